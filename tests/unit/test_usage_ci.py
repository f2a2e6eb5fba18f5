# SPDX-License-Identifier: GPL-2.0-only
"""What docs/usage.md shows for CI services obeys their schemas, and caches what it builds."""

import re
import sys
from pathlib import Path

import pytest

from ream.command import Command, finished
from ream.paths import CHECKOUT

KINDS = {"github-workflows": "on:", "gitlab-ci": "counts:"}
"""By schema, how its example there begins."""


def example(kind: str) -> str:
    text = (CHECKOUT / "docs/usage.md").read_text()
    (found,) = (
        block
        for block in re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        if block.startswith(KINDS[kind])
    )
    return found


def check(kind: str, text: str, place: Path) -> tuple[int, str]:
    file = place / "ci.yml"
    file.write_text(text)
    words = ("-m", "check_jsonschema", "--builtin-schema", f"vendor.{kind}", str(file))
    code, out, err = finished(Command((sys.executable, "-P", *words), place, 60))
    return code, out + err


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_for_a_service_is_what_its_schema_allows(kind: str, tmp_path: Path) -> None:
    code, said = check(kind, example(kind), tmp_path)
    assert code == 0, said


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("github-workflows", "runs-on:", "runs_on:"),
        ("gitlab-ci", "script:", "steps:"),
    ],
)
def test_a_wrong_word_in_an_example_is_found(
    kind: str, right: str, wrong: str, tmp_path: Path
) -> None:
    code, _ = check(kind, example(kind).replace(right, wrong), tmp_path)
    assert code == 1


@pytest.mark.parametrize("kind", KINDS)
def test_an_example_keeps_what_was_built(kind: str) -> None:
    text = example(kind)
    assert "cache" in text
    assert "./ream check --counts --baseline" in text
