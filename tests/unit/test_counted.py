# SPDX-License-Identifier: GPL-2.0-only
"""One patch, two patches: a number agrees with its noun wherever both are printed."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

import pytest

from ream.counted import counted
from ream.experiment.registry import sources_of
from ream.paths import CHECKOUT, EXPERIMENTS

PLURAL = re.compile(r" (?:boot|cell|channel|commit|host|launche|patche|record|round|row|sample)s\b")

NEVER_ONE = {
    ("lab/ream/fleet/plan.py", "len(cells)"),  # more than a plan may have
    ("lab/ream/kernel/variant.py", "len(patches)"),
    ("lab/ream/measure/whole.py", "nr"),
    ("lab/ream/published.py", "len(found)"),
    ("lab/ream/record/record.py", "len(alike)"),
    ("lab/ream/judge/first_wrong.py", "len(beginnings)"),
    ("lab/ream/judge/nearest.py", "name"),
    ("lab/ream/judge/nearest.py", "one.name"),
    ("experiments/deferred_init/guests.py", "len(alike)"),
    ("experiments/deferred_init/guests.py", "row.rounds"),
}
"""Numbers that the lines above them have found to be others, and names before a verb."""


def plurals() -> Iterator[tuple[str, str]]:
    """Where a formatted number has a plural behind it, whatever the number; file and number."""
    own = (path for folder in EXPERIMENTS.iterdir() for path in sources_of(folder))
    for path in sorted([*(CHECKOUT / "lab").rglob("*.py"), *own]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for one, text in pairwise(node.values) if isinstance(node, ast.JoinedStr) else ():
                if isinstance(one, ast.FormattedValue) and PLURAL.match(ast.unparse(text)[1:]):
                    yield str(path.relative_to(CHECKOUT)), ast.unparse(one.value)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 patches"), (1, "1 patch"), (2, "2 patches"), (1000, "1,000 patches")],
)
def test_a_number_has_the_form_of_its_noun(number: int, text: str) -> None:
    assert counted(number, "patch", "patches") == text


def test_a_noun_has_an_s_unless_its_plural_is_given() -> None:
    assert (counted(1, "row"), counted(3, "row")) == ("1 row", "3 rows")


def test_no_number_that_may_be_one_has_a_plural_behind_it() -> None:
    assert set(plurals()) == NEVER_ONE
