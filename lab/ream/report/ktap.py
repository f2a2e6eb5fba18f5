# SPDX-License-Identifier: GPL-2.0-only
"""Cases as KTAP version 1, which the kernel's own tools read.

Source: Documentation/dev-tools/ktap.rst. A skipped case is `not ok … # SKIP`, which the format
allows, so that a reader that ignores directives does not take it for a pass. Numbers are
diagnostics before the result line that they belong to.
"""

from collections.abc import Iterator, Sequence

from ream.report.case import Case, plain


def render(cases: Sequence[Case], comments: Sequence[str] = ()) -> str:
    """The complete output, ending in a newline; comments apply to all cases."""
    return "\n".join(_lines(cases, comments)) + "\n"


def _lines(cases: Sequence[Case], comments: Sequence[str]) -> Iterator[str]:
    yield "KTAP version 1"
    yield f"1..{len(cases)}"
    for comment in comments:
        yield f"# ream: {plain(comment)}"
    for number, case in enumerate(cases, start=1):
        name = _description(case.full_name)
        numbers = " ".join(f"{key}={plain(value)}" for key, value in case.numbers)
        yield f"# ream: {name}: {numbers}" if numbers else f"# ream: {name}"
        if case.outcome == "skip":
            yield f"not ok {number} {name} # SKIP {plain(case.reason)}"
        else:
            yield f"# ream: {name}: {plain(case.reason)}"
            yield f"{'ok' if case.outcome == 'pass' else 'not ok'} {number} {name}"


def _description(name: str) -> str:
    """A test's description, in which a hash sign would begin a directive and is replaced."""
    return plain(name).replace("#", "_")
