# SPDX-License-Identifier: GPL-2.0-only
"""The table of a run in plain ASCII, made from the object of `--json` alone."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from ream.counted import counted
from ream.experiment import BASE, BEFORE, CONTROL, PUBLISHED, RUNNING, is_copy, shown
from ream.report import columns_table, counts_table, grid, live_table, sensitivity
from ream.report.contract import Comparison, Fill, Grid, Ratio, Result, RowResult, Summary
from ream.report.explain import HUGE_PAGE, entry
from ream.report.limit import as_known, limit_of, limit_word
from ream.report.not_run import folded, folded_names
from ream.report.numbers import fit, interval, scale_of
from ream.report.readers import for_readers
from ream.report.shared import Shared, left, shared
from ream.report.short import in_short
from ream.report.words import clock_words, effect_words, explained, shown_verdict
from ream.width import WIDEST, table_line, width

LIVE = "live"
LABEL = 10
"""Width in columns of the labels of head and notes."""
NAME = 17
MEDIAN = 9
THEIR_NAME = 18
SHORT_NAME = 10
FIRST = 54
"""Width in columns of median, ratio and effect together."""
VALUES, NARROW_VALUES = 32, 28
"""Width in columns of two published values with their standard deviations."""
GRID_LABEL = 28
GRID_CELL = 8
MOST_WHOLE = 4
"""So many rows are printed one by one without --rows."""
GB = 10**9
OTHER_TIME = 0.05
"""CPU time is printed if it differs from time by at least this share."""

HOW_TO_READ = (
    "time, lower is better; ratio = variant / before with its 95 % interval over launches; "
    "of {word} = {limit} / variant, {meaning}."
)
MEANING = {
    "limit": "1 is the hardware's limit",
    "loop": "the share of a plain loop, which is something to compare with and no bound",
}

HOW_TO_READ_COUNTS = (
    "nanoseconds of a clock that counts the emulated CPU's instructions, lower is better; they are "
    "no time: a cache miss and a hit cost the same; where the kernel waits, the wait is counted, "
    "too; ratio = variant / before, from the least to the greatest round."
)

HOW_TO_READ_GUEST = (
    "time in the guest, lower is better; ratio = variant / before with its 95 % interval over "
    "launches, each of which boots every variant."
)

HOW_TO_READ_LIVE = (
    "time of a system call of the running kernel, lower is better; {caches}"
    "nothing is measured beside it that it could be a ratio to."
)


def render(summary: Summary) -> str:
    """The complete table, ending in a newline."""
    plain = for_readers(summary.plain())
    if plain.receipt.count is not None:
        return counts_table.render(plain, _head(plain))
    # A guest and a running kernel have no fills beside them.
    no_limit = plain.receipt.guest is not None or plain.stage == LIVE
    rows = _told(plain)
    of_many = shared(rows)
    blocks: list[Iterable[str]] = [_head(plain)]
    blocks += [_row(row, plain, of_many, no_limit=no_limit) for row in rows]
    blocks += [_of_many(of_many, len(rows)), _not_run(plain)]
    blocks += [live_table.block(plain), in_short(plain), *_tables(plain)]
    return _joined(blocks)


def overview(summary: Summary) -> str:
    """What a run found, first of all in short, and how it was measured, ending in a newline.

    Where rows are few, or nothing can be said in short, it is the complete table.
    """
    plain = for_readers(summary.plain())
    rows = _told(plain)
    is_counted = plain.receipt.count is not None
    short = list(counts_table.in_short(rows) if is_counted else in_short(plain))
    if len(rows) <= MOST_WHOLE or not short:
        return render(summary)
    more = f"`ream report {summary.run} --rows` has {counted(len(rows), 'row')} one by one."
    blocks = [_title(plain), _wrong(plain), short, live_table.block(plain), *_tables(plain)]
    blocks += [_of_many(shared(rows), len(rows)), _not_run(plain), _about(plain)]
    return _joined([*blocks, textwrap.wrap(more, width(), break_on_hyphens=False)])


def _told(summary: Summary) -> list[RowResult]:
    """The rows that are printed one by one; of others it is said together why they did not run."""
    apart = folded_names(summary.rows)
    return [row for row in summary.rows if row.row not in apart]


def _of_many(of_many: Iterable[Shared], nr_rows: int) -> Iterator[str]:
    said = (_said(one.label, one.words(nr_rows), indent=0) for one in of_many)
    return chain.from_iterable(said)


def _not_run(summary: Summary) -> Iterator[str]:
    return _all("not run", map(str, folded(summary.rows)), indent=0)


def _tables(summary: Summary) -> Iterator[Iterable[str]]:
    """Tables over all rows, and doubts about them."""
    yield from map(_grid, summary.grids)
    yield from columns_table.blocks(summary)
    yield _all("doubt", summary.doubts, indent=0)


def _joined(blocks: Iterable[Iterable[str]]) -> str:
    return "\n\n".join(text for block in blocks if (text := "\n".join(block))) + "\n"


def whose_published(summary: Summary) -> str:
    """A sentence on whose code `published` and `before` are; empty without `published`.

    summary: as it is for readers.
    """
    technique = shown(PUBLISHED)
    if not any(technique in row.variants for row in summary.rows):
        return ""
    if f"{BEFORE}: " not in summary.receipt.patches:
        return f" {technique} is our implementation of what was published, on this base."
    if f"{technique}: " not in summary.receipt.patches:
        return f" {technique} is this base as it is, {BEFORE} is the base without the technique."
    added = next((row.base_adds for row in summary.rows if row.base_adds), "what was added since")
    return (
        f" {technique} is this base without {added}; {BEFORE} is that without the technique, too;"
        f" {BASE} is this base as it is."
    )


def how_to_read(summary: Summary) -> str:
    """An explanation of the numbers in this table."""
    if summary.receipt.count is not None:
        return counts_table.HOW_TO_READ
    units = {row.unit for row in summary.rows}
    if len(units) > 1:
        return f"rows of instructions: {HOW_TO_READ_COUNTS} Rows of ns: {_in_guest(summary)}"
    if units == {"instructions"}:
        return HOW_TO_READ_COUNTS
    if summary.stage == LIVE:
        return HOW_TO_READ_LIVE.format(
            caches=f"{found}; " if (found := found_live(summary)) else ""
        )
    if summary.receipt.guest is None:
        word = limit_word(summary)
        return HOW_TO_READ.format(word=word, limit=limit_of(summary), meaning=MEANING[word])
    return _in_guest(summary)


def _in_guest(summary: Summary) -> str:
    emulated = "TCG" in (summary.receipt.guest or "")
    return ("EMULATED, which says nothing of hardware: " if emulated else "") + HOW_TO_READ_GUEST


def found_live(summary: Summary) -> str | None:
    """The state of caches before a sample of the live stage, in words; None if it is unknown."""
    return summary.found_live or as_known(summary, "found_live")


def _head(summary: Summary) -> Iterator[str]:
    yield from _title(summary)
    yield from _built(summary)
    yield from _wrong(summary)
    yield from _how(summary)


def _about(summary: Summary) -> Iterator[str]:
    """What was measured, and how."""
    yield from _built(summary)
    yield from _how(summary)


def _title(summary: Summary) -> Iterator[str]:
    yield from textwrap.wrap(f"ream {summary.experiment}, {summary.stage} stage", width())
    if summary.question:
        yield from _said("question", summary.question, indent=0)


def _wrong(summary: Summary) -> Iterator[str]:
    untouched = (f"{name}: not measured: {why}" for name, why in summary.untouched.items())
    yield from _all("untouched", untouched, indent=0)
    yield from _all("wrong", summary.wrong_words(), indent=0)


def _built(summary: Summary) -> Iterator[str]:
    receipt = summary.receipt
    yield from _said("machine", receipt.machine, indent=0)
    yield from _said("base", f"{receipt.tree}; {receipt.compiler}", indent=0)
    if receipt.patches:
        yield from _said("patches", receipt.patches, indent=0)


def _how(summary: Summary) -> Iterator[str]:
    receipt = summary.receipt
    yield from _said("measured", _measured(summary), indent=0)
    if receipt.guest is not None:
        yield from _said("guest", receipt.guest, indent=0)
    if receipt.count is not None:
        # The features of the CPU are one word for QEMU, and longer than a line.
        yield from _said("counted", re.sub(r",(?=\S)", ", ", receipt.count), indent=0)
    said = how_to_read(summary) + whose_published(summary)
    yield from _said("read", f"{said} {explained('floor', 'interval', 'technique')}", indent=0)
    detected = () if receipt.count else (sensitivity.of_run(summary), sensitivity.controls(summary))
    for text in filter(None, detected):
        yield from _said("detects", text, indent=0)
    yield from _said("record", summary.run, indent=0)


def _measured(summary: Summary) -> str:
    receipt = summary.receipt
    parts = [f"ream {receipt.ream}"]
    if receipt.launches is not None:
        parts.append(counted(receipt.launches, "launch", "launches"))
    if receipt.seed is not None:
        parts.append(f"seed {receipt.seed}")
    if receipt.load_before is not None:
        parts.append(f"load {receipt.load_before:.2f} before, {_or(receipt.load_after)} after")
    if receipt.steal_pct is not None:
        parts.append(f"steal {receipt.steal_pct:.1f} %")
    if receipt.others_pct is not None:
        parts.append(f"other programs {receipt.others_pct:.1f} %")
    return ", ".join(parts)


def _or(value: float | None) -> str:
    return "?" if value is None else f"{value:.2f}"


def grid_lines(own: Grid, label: int, cell: int) -> Iterator[str]:
    """The lines of a grid without notes: `label` columns, then `cell` columns per folio size."""
    yield from _grid_line(" " * label, [f"{column:>{cell}}" for column in own.columns])
    for line in own.lines:
        name = grid.label(line)
        if len(name) > label:
            yield from textwrap.wrap(name, width())
            name = ""
        cells = ("-" if value is None else fit(value, cell - 1) for value in line.cells)
        yield from _grid_line(f"{name:<{label}}", [f"{one:>{cell}}" for one in cells])


def _grid_line(label: str, cells: Sequence[str]) -> Iterator[str]:
    for line in table_line(label, cells):  # a damaged record may have a column's name of any length
        yield from textwrap.wrap(line, width(), drop_whitespace=False)


def grid_notes(own: Grid) -> tuple[str, ...]:
    """The distinct notes of a grid, each with the labels of the lines that it applies to."""
    said: dict[str, list[str]] = {}
    for line in own.lines:
        if line.note:
            said.setdefault(line.note, []).append(grid.label(line))
    return (*(f"{'; '.join(whose)}: {note}" for note, whose in said.items()), *own.notes)


def grid_title(own: Grid) -> str:
    """The title of a grid of this run, or of a published one with its source."""
    whose = "here" if own.id is None else f"in {own.id} ({own.source})"
    return f"{own.unit} by size of folio, {own.better} is better, {whose}"


def _grid(own: Grid) -> Iterator[str]:
    yield from textwrap.wrap(grid_title(own), width(), break_on_hyphens=False)
    yield from grid_lines(own, GRID_LABEL, GRID_CELL)
    yield from _all("note", grid_notes(own))


def _row(
    row: RowResult, summary: Summary, of_many: Sequence[Shared], *, no_limit: bool
) -> Iterator[str]:
    before = row.variants.get(BEFORE)
    # Bytes moved are in the title; those of a map are not.
    amount = ""
    if before is not None and before.nr_bytes and row.bytes_of == "map":
        amount = f"; {decimal_bytes(before.nr_bytes)} of map a sample"
    yield from textwrap.wrap(
        f"{row.row}: {row.title or '?'}{amount}",
        width(),
        subsequent_indent="  ",
        break_on_hyphens=False,
    )
    if row.skipped is None and row.variants:
        no_limit = no_limit or row.params.get("measure") == "metadata"
        yield from _numbers(row, summary, no_limit=no_limit)
    elif summary.grids:
        # The published numbers are in the grid; that there are none of ours is all there is to say.
        yield from _all("note", left(row, "note", of_many))
        return
    if len(row.comparisons) == 1:
        yield from _published(row.comparisons[0], row)
        if differs := left(row, "differs", of_many):
            yield from _said("differs", "; ".join(differs))
    elif row.comparisons:
        yield from _several(row, f"{summary.experiment}-")
    if row.explanation is not None:
        yield from _said("why", row.explanation)
    yield from _all("note", left(row, "note", of_many))
    yield from _all("also", left(row, "also", of_many))


def _numbers(row: RowResult, summary: Summary, *, no_limit: bool) -> Iterator[str]:
    scale, unit = scale_of([result.median for result in row.variants.values()], row.unit)
    by_entry = any(result.per_entry is not None for result in row.variants.values())
    per, each_scale = entry(row) if by_entry else "page", 1.0
    each = f"ns/{per}" if row.unit == "ns" else f"a {per}"
    if per == HUGE_PAGE:
        # It takes thousands of what a page takes, and there is room for one of its words.
        each, each_scale = ("us/huge" if row.unit == "ns" else "k/huge"), 1e3
    # Where there are no fills nothing is unknown; nor where a count has no rate.
    word = limit_word(summary)
    near = "" if no_limit else f"of {word}"
    rate = "GB/s" if row.unit == "ns" else ""
    yield from _line("", unit, "ratio [low .. high]", "effect", near, each, rate, "CPUs")
    for to, its in blocks_of(row):
        if row.floors:
            tree = ", the tree that it stands on" if to != BEFORE else ""
            yield f"  against {to}{tree}:"
        for name in its:
            result = row.variants[name]
            yield from _line(
                name,
                fit(result.median / scale, 9),
                _ratio_cell(name, result, to),
                _effect_cell(name, result, to),
                fit(result.of_limit, 8) if near else "",
                _each(result, each_scale),
                fit(result.gb_per_s, 6) if rate else "",
                fit(result.threads, 4, 0),
            )
    yield from _in_place_of_numbers(summary.wrong)
    for fill in best_fills(row.limits or ((row.limit,) if row.limit else ())):
        yield from _line(
            f"{word} {fill.how}",
            fit(fill.value / scale, 9),
            "",
            "",
            "1",
            fit(fill.ns_per_page, 7),
            fit(fill.gb_per_s, 6),
            fit(fill.threads, 4, 0),
        )
    yield from _below(row)


def _below(row: RowResult) -> Iterator[str]:
    """The lines below those of variants and limits."""
    yield from _all("beside", beside_words(row))
    if said := cpu_times(row):
        yield from _said("CPU time", said)
    if row.live is not None:
        yield from _said("live", live_table.of_row(row.live))
    if row.clock is not None:
        yield from _said("clock", clock_words(row.clock))
    if RUNNING not in row.variants:
        for to, floor in (*row.floors.items(), (BEFORE, row.floor)):
            yield from _said("floor", floor_words(floor, to))
    if (least := sensitivity.smallest(row)) is not None:
        yield from _said("detects", least)
    if (its := sensitivity.control(row)) is not None:
        yield from _said(CONTROL, its)
    if (said := spread(row)) and any((r.launches or 0) > 1 for r in row.variants.values()):
        yield from _said("launches", said)


def _in_place_of_numbers(wrong: Iterable[str]) -> Iterator[str]:
    for name in wrong:
        yield from _line(name, "WRONG", "", "", "", "", "", "")


def beside_words(row: RowResult) -> Iterator[str]:
    """A sentence for each other quantity of a row, with every variant's median and ratio."""
    for one in row.beside:
        scale, unit = scale_of([result.median for result in one.variants.values()], one.unit)
        cells = (
            f"{name} {fit(result.median / scale, 9)}"
            + ("" if result.over_before is None else f" ({interval(result.over_before)})")
            for name, result in one.variants.items()
            if not is_copy(name)
        )
        yield f"{one.name}, {unit}: {', '.join(cells)}"


def _each(result: Result, scale: float) -> str:
    value = result.per_entry or result.per_page or result.ns_per_page
    return fit(None if value is None else value / scale, 7)


def cpu_times(row: RowResult) -> str:
    """CPU time over all CPUs, in words; empty if it equals the row's time.

    The two differ if several threads work, or if an engine works instead of the CPU.
    """
    known = {name: one for name, one in row.variants.items() if one.cpu_ns and not is_copy(name)}
    if all(abs((one.cpu_ns or 0) / one.median - 1) < OTHER_TIME for one in known.values()):
        return ""
    return "; ".join(f"{name} {_cpu_time(one)}" for name, one in known.items())


def _cpu_time(result: Result) -> str:
    scale, unit = scale_of([result.cpu_ns or 0], "ns")
    amount = f"{fit((result.cpu_ns or 0) / scale, 6)} {unit}"
    per_gib = f"{fit(result.cpu_s_per_gib, 6, 3)} CPU s/GiB"
    over = result.cpu_over_before
    return f"{amount}, {per_gib}" + ("" if over is None else f", ratio {interval(over)}")


def blocks_of(row: RowResult) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Pairs of a reference variant and the variants compared with it; given trees are first.

    Second copies are left out, as they are the noise floors.
    """
    own = [name for name, its in row.variants.items() if not its.compared_with]
    for to in (*row.floors, BEFORE):
        given = [name for name, its in row.variants.items() if its.compared_with == to]
        rest = [name for name in own if name != to and not is_copy(name)]
        first = [to] if to in row.variants else []
        yield to, (*first, *given, *(rest if to == BEFORE else ()))


def _ratio_cell(name: str, result: Result, to: str) -> str:
    if name == RUNNING:
        return ""
    return "1" if name == to else interval(result)


def _effect_cell(name: str, result: Result, to: str) -> str:
    """The effect in words; only NOT VERIFIED if memory was wrong."""
    if not result.verified:
        return "NOT VERIFIED"
    return "" if name == to else effect_words(result)


def _line(*cells: str) -> Iterator[str]:
    """One line. A name that is too long for its column gets lines of its own."""
    name, median, ratio, effect, near, per_page, rate, cpus = cells
    # The first four are beside each other in any case.
    room = NAME if width() >= NAME + FIRST else SHORT_NAME
    if len(name) + len(median) >= room + MEDIAN:
        yield from textwrap.wrap(name, width(), initial_indent="  ", subsequent_indent="  ")
        name = ""
    room += MEDIAN - len(name)
    first = (f" {ratio:>22}", f"  {effect:<18}")
    rest = (f" {near:>8}", f" {per_page:>7}", f" {rate:>6}", f" {cpus:>4}")
    yield from table_line(f"  {name}{median:>{room}}", first, rest)


def best_fills(limits: Iterable[Fill]) -> list[Fill]:
    """The fastest fill of each number of CPUs."""
    best: dict[int, Fill] = {}
    for fill in limits:
        if fill.threads not in best or fill.value < best[fill.threads].value:
            best[fill.threads] = fill
    return [best[threads] for threads in sorted(best)]


def floor_words(floor: Ratio | None, of: str = BEFORE) -> str:
    """The noise floor of variant `of`, in words."""
    if floor is None:
        return f"none: {of} was not measured against its second copy"
    return f"{interval(floor)}, {of} against its second copy"


def spread(row: RowResult, *, copies: bool = True) -> str:
    """For each variant, the smallest and the greatest ratio of any one launch.

    copies: whether second copies are included.
    """
    return ", ".join(
        f"{name} {fit(result.spread_low, 5, 3)} to {fit(result.spread_high, 5, 3)}"
        for name, result in row.variants.items()
        if (copies or not is_copy(name))
        and result.spread_low is not None
        and result.spread_high is not None
    )


def _published(table: Comparison, row: RowResult) -> Iterator[str]:
    source = ", ".join(part for part in (table.author, table.date) if part)
    values = f"{printed}, " if (printed := printed_values(table)) else ""
    about = "about " if table.approximate else ""
    word = "ratio of times" if table.better == "higher" else "ratio"
    ratio = "no ratio" if table.ratio is None else f"{word} {about}{fit(table.ratio, 5, 3)}"
    more = "".join(f"; {part}" for part in (table.claims, table.machine) if part)
    yield from _said("table", f"{table.id} ({source}): {values}{ratio}{more}")
    # Its reason names the model, but not in older records.
    told = table.model is None or table.verdict == "modelled"
    model = "" if told else f" (engine modelled as {table.model})"
    reason = table.reason or "no reason recorded"
    yield from _said("verdict", f"{shown_verdict(table, row).upper()}{model}: {reason}")


def printed_values(table: Comparison) -> str:
    """The values as printed, such as `49.7 (0.6) -> 28.3 (0.6) ms`; empty for a ratio alone."""
    if table.before is None or table.published is None:
        return ""
    pairs = ((table.before, table.before_sd), (table.published, table.published_sd))
    cells = [f"{value:g}" if sd is None else f"{value:g} ({sd:g})" for value, sd in pairs]
    return f"{' -> '.join(cells)} {table.unit or ''}".rstrip()


def _several(row: RowResult, prefix: str) -> Iterator[str]:
    """A line for each published machine and its differences, then the reasons of verdicts."""
    tables = row.comparisons
    names = [table.id.removeprefix(prefix) for table in tables]
    shared = [
        text
        for text in tables[0].differs
        if all(text in one.differs and text != one.reason for one in tables)
    ]
    yield from _their_line("published", "CPUs", "before -> published (sd)", "ratio", "verdict")
    for name, table in zip(names, tables, strict=True):
        about = "~" if table.approximate else ""
        yield from _their_line(
            name,
            fit(table.threads, 4, 0),
            printed_values(table) or "?",
            about + fit(table.ratio, 5, 3),
            shown_verdict(table, row).upper(),
        )
        own = [text for text in table.differs if text not in (*shared, table.reason)]
        own += [f"{name} there: inferred" for name in table.inferred]
        if said := [*([table.claims] if table.claims else []), *own]:
            indent = " " * (LABEL + 2)
            yield from textwrap.wrap(
                "; ".join(said), width(), initial_indent=indent, subsequent_indent=indent
            )
    sources = dict.fromkeys(
        ", ".join(part for part in (table.author, table.date) if part) for table in tables
    )
    yield from _said("source", "; ".join(source or "?" for source in sources))
    reasons: dict[tuple[str, str], list[str]] = {}
    for name, table in zip(names, tables, strict=True):
        why = shown_verdict(table, row).upper(), table.reason or "no reason recorded"
        reasons.setdefault(why, []).append(name)
    for (word, reason), whose in reasons.items():
        yield from _said("verdict", f"{word} ({', '.join(whose)}): {reason}")
    if shared:
        yield from _said("differs", "; ".join(shared))


def _their_line(name: str, threads: str, values: str, ratio: str, verdict: str) -> Iterator[str]:
    if len(name) > THEIR_NAME:
        yield from textwrap.wrap(name, width(), initial_indent="  ", subsequent_indent="  ")
        name = ""
    room = VALUES if width() == WIDEST else NARROW_VALUES
    cells = (f" {threads:>4}", f"  {values:<{room}}", f" {ratio:>6}  {verdict}")
    yield from table_line(f"  {name:<{THEIR_NAME}}", cells)


def decimal_bytes(nr_bytes: int) -> str:
    """The number of bytes in decimal MB or GB, as rates use them."""
    return f"{nr_bytes / 1e9:.2f} GB" if nr_bytes >= GB else f"{nr_bytes / 1e6:.2f} MB"


def _said(label: str, text: str, *, indent: int = 2) -> Iterator[str]:
    """A labelled paragraph, wrapped with a hanging indent."""
    yield from textwrap.wrap(
        text,
        width(),
        initial_indent=f"{' ' * indent}{label:<{LABEL}}",
        subsequent_indent=" " * (indent + LABEL),
        break_on_hyphens=False,
    )


def _all(label: str, texts: Iterable[str], *, indent: int = 2) -> Iterator[str]:
    for text in texts:
        yield from _said(label, text, indent=indent)
