# SPDX-License-Identifier: GPL-2.0-only
"""Lists functions that a series changes: each instruction with its number of executions."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ream.experiment import BEFORE
from ream.judge.judgement import Listing, Operation
from ream.kernel.cache import room
from ream.progress import Reporter
from ream.record.record import ANNOTATED
from ream.session.request import CountOptions, Request
from ream.session.run import run_session

MOST_FUNCTIONS = 3

_HEAD = re.compile(r"(?P<row>[^,]+), (?P<variant>[^:]+): (?P<function>\S+)\(\)")
"""First line of a listing, as ream.count.annotate writes it."""


def listings(
    request: Request, known: Mapping[tuple[str, str], Operation], reporter: Reporter
) -> Iterator[Listing]:
    """Yield listings of the functions that change most, in the experiment's most affected row.

    request: a run that counts `before` and the series, which is its last variant. No record is
    kept.
    """
    ours = [one for (name, _), one in known.items() if name == request.experiment.name]
    most = max((one for one in ours if one.functions), key=lambda one: one.size, default=None)
    if most is None:
        return
    names = tuple(name for name, _ in most.functions[:MOST_FUNCTIONS])
    after = request.variants[-1].name
    reporter.step(f"{most.experiment}: listing {', '.join(names)} in {most.row}")
    with room(request.cache, reporter.step) as runs:
        asked = replace(
            request,
            experiment=request.experiment.only([most.row]),
            count=CountOptions(annotate=names),
            verify_minutes=0.0,
            runs=runs,
        )
        outcome = run_session(asked, Reporter(quiet=True))
        found = by_head((outcome.path / ANNOTATED).read_text(encoding="utf-8"))
    for name in names:
        old, new = (found.get((most.row, variant, name), "") for variant in (BEFORE, after))
        if old or new:
            yield Listing(most.experiment, most.row, name, old, new)


def by_head(text: str) -> Mapping[tuple[str, str, str], str]:
    """Return listings by row, variant and function; parts of one function are joined."""
    found: dict[tuple[str, str, str], str] = {}
    for part in text.split("\n\n"):
        head, _, lines = part.strip("\n").partition("\n")
        if its := _HEAD.fullmatch(head):
            key = its["row"], its["variant"], its["function"].partition(".")[0]
            found[key] = "\n".join(filter(None, (found.get(key), lines)))
    return found
