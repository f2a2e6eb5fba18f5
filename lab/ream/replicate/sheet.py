# SPDX-License-Identifier: GPL-2.0-only
"""The contents of the page of `ream replicate --html`."""

from collections.abc import Iterator, Sequence

from ream.counted import counted
from ream.replicate import render
from ream.replicate.outcome import Replication
from ream.replicate.rule import counted_words
from ream.replicate.why import same_measurements
from ream.report.html.sheet import Fact, Part, Sheet
from ream.report.html.tables import NONE, HtmlTable


def of_tables(replications: Sequence[Replication]) -> Sheet:
    """Published tables with what was measured here, and the verdict on each."""
    words = counted_words(one.word for one in replications)
    once = "rest on the same measurement, and are one piece of evidence"
    return Sheet(
        title="Published tables, measured here",
        found=f"Of {counted(len(replications), 'published table')}: {words}.",
        facts=tuple(
            ("once", f"{', '.join(ids)} {once}") for ids in same_measurements(replications)
        ),
        parts=tuple(map(_part, replications)),
    )


def _part(its: Replication) -> Part:
    lines = [*render.cells(its)]
    table = HtmlTable(
        caption=its.table.id,
        head=(render.params(its) or "line", "claimed", "ratio claimed", "here", "ratio here",
              "floor", "verdict", "why"),
        lines=tuple(
            (
                f"{one.name} *" if one.is_control else one.name,
                *(text or NONE for text in (one.there, one.claimed, one.here, one.ratio)),
                one.floor or NONE,
                one.word or NONE,
                (one.why if one.word else render.REFERENCE) or NONE,
            )
            for one in lines
        ),
        colours=tuple(("",) * 6 + (one.word.replace(" ", "-"), "") for one in lines),
    )  # fmt: skip
    return Part(
        title=its.table.title,
        found=render.verdict_words(its),
        table=table,
        notes=tuple(_notes(its)),
    )


def _notes(its: Replication) -> Iterator[Fact]:
    if its.controls:
        yield "*", render.CONTROL
    yield from (("counts", said) for said in render.counts(its))
    yield from ((label, said) for label, said in render.about(its) if label != "verdict")
    yield from ((f"differs: {what}", said) for what, said in render.why_it_may_differ(its))
    yield from render.how_to_read(its)
