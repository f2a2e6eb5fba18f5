# SPDX-License-Identifier: GPL-2.0-only
"""Cases as KTAP version 1, which the kernel's own tools read.

Source: Documentation/dev-tools/ktap.rst. What was skipped is `not ok … # SKIP`, as it allows, so
that no reader that knows no directives takes it for a pass. Numbers are diagnostics before the
result line that they belong to.
"""

from collections.abc import Iterator, Sequence

from ream.report.case import Case, plain


def render(cases: Sequence[Case], comments: Sequence[str] = ()) -> str:
    """The whole output, ending in a newline; comments: what holds for all cases."""
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
    """Any characters but a hash sign, which begins a directive."""
    return plain(name).replace("#", "_")
