# SPDX-License-Identifier: GPL-2.0-only
"""The contents of the pages of `ream compare --html` and `ream history --html`."""

from collections.abc import Iterator, Sequence

from ream.counted import counted
from ream.experiment import is_copy, shown
from ream.history.choose import Choice
from ream.history.compare import Compared, ComparedLine
from ream.history.comparison import about, in_short, interval, remarks
from ream.history.entry import Damaged, HistoryEntry
from ream.history.listing import headline, verdict_words
from ream.measure.statistics import Estimate
from ream.report.html.sheet import Fact, Part, Sheet, colour_of
from ream.report.html.tables import NONE, HtmlTable

RATIOS = (
    "The number of a variant is its time over that of before, the geometric mean of the rows; lower"
    " is faster. Verdicts are on published tables."
)


def of_compared(compared: Compared) -> Sheet:
    """Runs side by side: a line for each row and variant, with the interval of each run."""
    tags = [f"[{number}]" for number in range(1, len(compared.runs) + 1)]
    cells = [_cells(line, compared.runs) for line in compared.lines]
    table = HtmlTable(
        caption="Ratios with their 95 % intervals, lower is better",
        head=("row", "variant", *tags, "pooled", "remarks"),
        lines=tuple(tuple(text for text, _ in line) for line in cells),
        colours=tuple(tuple(colour for _, colour in line) for line in cells),
    )
    return Sheet(
        title=f"{compared.experiment}, {compared.stage} stage: {len(tags)} runs compared",
        found=f"{in_short(compared)}.",
        facts=tuple(zip(tags, compared.runs, strict=True)),
        parts=(Part(table=table, notes=tuple(about(compared))),),
    )


def _cells(line: ComparedLine, runs: Sequence[str]) -> list[tuple[str, str]]:
    """Each cell of a line with its colour."""
    name = line.row if line.unit == "ns" else f"{line.row} ({line.unit})"
    of_run = {one.run: one.estimate for one in line.runs}
    estimates = [*map(of_run.get, runs), line.pooled if len(line.runs) > 1 else None]
    said = "; ".join(remarks(line)) or NONE
    return [
        (name, ""),
        (shown(line.variant), ""),
        *(_ratio(one, is_noise=is_copy(line.variant)) for one in estimates),
        (said, "bad" if line.differ else ""),
    ]


def _ratio(estimate: Estimate | None, *, is_noise: bool) -> tuple[str, str]:
    """A ratio with its colour; that of a second copy of the same code is no gain and no loss."""
    if estimate is None:
        return NONE, ""
    colour = "undecided" if is_noise else colour_of(estimate.low, estimate.high)
    return interval(estimate), colour


def of_history(
    entries: Sequence[HistoryEntry],
    damaged: Sequence[Damaged],
    unfinished: Sequence[Fact],
    choice: Choice,
) -> Sheet:
    """Runs, newest first. unfinished: the name of each with the command that continues it."""
    experiments = len({one.experiment for one in entries})
    said = f"{counted(len(entries), 'run')} of {counted(experiments, 'experiment')}"
    if unfinished:
        said += f"; {len(unfinished)} not finished"
    if damaged:
        said += f"; {counted(len(damaged), 'damaged record')}"
    faults = [(one.name, one.fault) for one in damaged]
    return Sheet(
        title="Runs",
        found=f"{said}.",
        parts=(
            *_pairs("Not finished", "what to do", unfinished),
            Part(table=_runs(entries, choice), notes=(("read", RATIOS),)),
            *_pairs("Damaged", "fault", faults),
        ),
    )


def _runs(entries: Sequence[HistoryEntry], choice: Choice) -> HtmlTable:
    return HtmlTable(
        caption="Newest first",
        head=("run", "experiment", "stage", "rows", "ratios", "verdicts", "doubts", "damage"),
        lines=tuple(
            (
                one.run,
                one.experiment,
                one.stage,
                str(len(choice.rows(one))),
                headline(one, choice),
                verdict_words(one, choice) or NONE,
                str(one.nr_doubts),
                one.fault or NONE,
            )
            for one in entries
        ),
        colours=tuple(("",) * 7 + ("bad" if one.fault else "",) for one in entries),
    )


def _pairs(title: str, what: str, pairs: Sequence[Fact]) -> Iterator[Part]:
    if pairs:
        yield Part(
            title=title, table=HtmlTable(caption=title, head=("run", what), lines=tuple(pairs))
        )
