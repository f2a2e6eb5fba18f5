# SPDX-License-Identifier: GPL-2.0-only
"""The block for a cover letter: plain ASCII, at most 74 columns wide."""

import textwrap
from collections.abc import Iterator

from ream.counted import counted
from ream.experiment import BEFORE, RUNNING, shown_in
from ream.report import columns_table, sensitivity
from ream.report.contract import Grid, Result, RowResult, Summary
from ream.report.explain import beside
from ream.report.limit import FILL, is_bound, limit_of, limit_word
from ream.report.numbers import fit, interval
from ream.report.readers import for_readers
from ream.report.table import (
    beside_words,
    blocks_of,
    cpu_times,
    grid_lines,
    grid_notes,
    grid_title,
    how_to_read,
    spread,
    whose_published,
)
from ream.report.words import clock_words, effect_words
from ream.width import as_wide_as

WIDTH = 74
LABEL = 9
ROW = 17
VARIANT = 14
GRID_LABEL = 26
GRID_CELL = 7
RULE = f"{'-' * (ROW + VARIANT + 1)}+{'-' * 10}+{'-' * 24}+{'-' * 5}"


def render(summary: Summary) -> str:
    """The block, ending in a newline. Rows that did not run are named with their reason."""
    with as_wide_as(WIDTH):  # however wide the terminal: it is to be pasted
        return _block(for_readers(summary.plain()))


def _block(summary: Summary) -> str:
    receipt = summary.receipt
    head = [
        _labelled("Machine:", receipt.machine),
        _labelled("Base:", f"{receipt.tree}; {receipt.compiler}"),
    ]
    if receipt.patches:
        head.append(_labelled("Patches:", receipt.patches))
    blocks = [_wrapped(_method(summary)), "\n".join(head), "\n".join(_table(summary))]
    blocks += ["\n".join(_grid(own)) for own in summary.grids]
    blocks += ["\n".join(lines) for lines in columns_table.blocks(summary)]
    skipped: dict[str, list[str]] = {}
    for row in summary.rows:
        if row.skipped:
            skipped.setdefault(row.skipped, []).append(row.row)
    if skipped:
        each = (f"{', '.join(names)} ({reason})" for reason, names in skipped.items())
        blocks.append(_wrapped(f"Not run: {'; '.join(each)}."))
    if said := [*filter(None, (sensitivity.of_run(summary), sensitivity.controls(summary)))]:
        blocks.append(_wrapped("".join(f"{text[0].upper()}{text[1:]}. " for text in said).rstrip()))
    if summary.wrong:
        blocks.append(_wrapped(f"Wrong, and not measured: {'; '.join(summary.wrong_words())}."))
    if summary.doubts:
        blocks.append(_wrapped(f"Doubts: {'; '.join(summary.doubts)}."))
    command = receipt.command or f"./ream run {summary.experiment}"
    blocks.append(f"To reproduce:\n\n{pasteable(command)}\n\nRecord: {summary.run}")
    return "\n\n".join(blocks) + "\n"


def _method(summary: Summary) -> str:
    if summary.receipt.guest is not None:
        return (
            f"{summary.experiment}, measured with ream {summary.receipt.ream}, "
            f"{summary.stage} stage, {_launches(summary)} of each kernel; "
            f"{summary.receipt.guest}. {_how(summary)}{whose_published(summary)}"
        )
    if summary.stage == "live":
        return (
            f"{summary.experiment}, measured with ream {summary.receipt.ream}, live stage, "
            f"{_launches(summary)}, in ms. {_how(summary)}"
        )
    return (
        f"{summary.experiment}, measured with ream {summary.receipt.ream}, {summary.stage} stage, "
        f"{_launches(summary)}. Times in ms, lower is better. The ratio is "
        f"{_ratio_of(summary)} with a 95 % interval over launches; the floor is the same kernel "
        f"against a second copy of itself; {_limit(summary)}.{whose_published(summary)}"
    )


def _ratio_of(summary: Summary) -> str:
    """The ratio's numerator and denominator, including the trees of given series."""
    trees = sorted({to for row in summary.rows for to in row.floors})
    return f"variant/{BEFORE}" + "".join(
        f", and patched/{to} for what was put on {to}, this base as it is" for to in trees
    )


def _limit(summary: Summary) -> str:
    limit = limit_of(summary)
    if not is_bound(summary):
        return f"loop is the share of a plain loop ({limit}), which is no bound"
    if limit == FILL:
        limit = f"the {limit} with as many CPUs"
    return f"the limit is {limit}, 1 is the limit"


def _launches(summary: Summary) -> str:
    number = summary.receipt.launches
    return "? launches" if number is None else counted(number, "launch", "launches")


def _how(summary: Summary) -> str:
    text = how_to_read(summary)
    return text[0].upper() + text[1:]


def _table(summary: Summary) -> Iterator[str]:
    for number, unit in enumerate(dict.fromkeys(row.unit for row in summary.rows)):
        if number:
            yield ""
        said = "M instr" if unit == "instructions" else "ms"
        head = f"{'row':<{ROW}} {'variant':<{VARIANT}}|{said:>9} | {'ratio':<22}"
        yield f"{head} |{limit_word(summary)}"
        for row in summary.rows:
            if row.variants and row.unit == unit:
                yield RULE
                yield from _row(row)


def _grid(own: Grid) -> Iterator[str]:
    yield _wrapped(f"{grid_title(own)}:")
    yield from grid_lines(own, GRID_LABEL, GRID_CELL)
    for text in grid_notes(own):
        yield _wrapped(f"Note: {text}.")


def _row(row: RowResult) -> Iterator[str]:
    label = row.row
    for to, names in blocks_of(row):
        for name in names:
            result = row.variants[name]
            ratio = "" if name in (to, RUNNING) else interval(result)
            yield from _line(label, name, _ms(result), ratio, result.of_limit)
            label = ""
        if its := [f"{name} {effect_words(row.variants[name])}" for name in names if name != to]:
            said = f"  against {to}: {'; '.join(its)}"
            yield from textwrap.wrap(said, WIDTH, subsequent_indent="    ")
        floor = row.floor if to == BEFORE else row.floors[to]
        if floor is not None:
            yield from _line("", "(floor)", "", interval(floor), None)
    if row.clock is not None:
        yield from textwrap.wrap(
            f"  clock: {clock_words(row.clock)}", WIDTH, subsequent_indent="    "
        )
    if said := cpu_times(row):
        yield from textwrap.wrap(f"  CPU time: {said}", WIDTH, subsequent_indent="    ")
    for said in beside_words(row):
        yield from textwrap.wrap(f"  {said}", WIDTH, subsequent_indent="    ")
    # Records from before this was measured keep the letter that they were given.
    if any(result.p_value is not None for result in row.variants.values()):
        said = f"  launches: {spread(row, copies=False)}"
        yield from textwrap.wrap(said, WIDTH, subsequent_indent="    ")
    for said in map(shown_in, beside(row)):
        yield from textwrap.wrap(f"  {said}", WIDTH, subsequent_indent="    ")


def _line(label: str, name: str, ms: str, ratio: str, near: float | None) -> Iterator[str]:
    """One line. A name that is too long for its column gets a line of its own."""
    cells = []
    for text, width in ((label, ROW), (name, VARIANT)):
        if len(text) > width:
            yield from textwrap.wrap(text, WIDTH)
        cells.append(f"{text if len(text) <= width else '':<{width}}")
    share = "" if near is None else fit(near, 4)
    yield f"{' '.join(cells)}|{ms:>9} | {ratio:<22} | {share}".rstrip()


def _ms(result: Result) -> str:
    ms = result.median / 1e6
    return fit(ms, 9) if ms >= 1 else fit(ms, 9, 4)


def pasteable(command: str) -> str:
    """The command, indented, with long lines continued as a shell expects."""
    lines = textwrap.wrap(
        command, WIDTH - 6, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
    )
    return "  " + " \\\n    ".join(lines)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_on_hyphens=False)


def _labelled(label: str, text: str) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=f"{label:<{LABEL}}",
        subsequent_indent=" " * LABEL,
        break_on_hyphens=False,
    )
