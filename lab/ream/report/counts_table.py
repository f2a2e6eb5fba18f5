# SPDX-License-Identifier: GPL-2.0-only
"""The table of a counted run: the differences per page, per function and per patch."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ream.counted import counted
from ream.experiment import BEFORE, is_copy
from ream.report.contract import Counted, RowResult, Summary
from ream.report.not_run import folded, folded_names
from ream.report.numbers import fit
from ream.width import table_line, width

HOW_TO_READ = (
    "what the kernel's own functions execute in a sample, for each page or entry, with every CPU's"
    " part; exact, and no time: a locked operation is one instruction and may take twenty cycles,"
    " a streaming store is one and may take none. Lines and pages are distinct ones."
)

QUANTITIES = {
    "instructions": "instructions",
    "loads": "loads",
    "load_bytes": "bytes loaded",
    "stores": "stores",
    "store_bytes": "bytes stored",
    "locked": "locked operations",
    "streaming": "streaming stores",
    "fences": "fences",
    "prefetches": "prefetches",
    "taken": "branches taken",
    "repeated": "words moved by rep",
    "lines_read": "lines read",
    "lines_written": "lines written",
    "lines_only_written": "lines only written",
    "pages": "pages touched",
}
"""The printed name of each quantity, by its name in records."""

SHORT = {
    "instructions": "instr",
    "loads": "load",
    "load_bytes": "B loaded",
    "stores": "store",
    "store_bytes": "B stored",
    "locked": "locked",
    "streaming": "streamed",
    "fences": "fence",
    "prefetches": "prefetch",
    "taken": "taken",
    "repeated": "by rep",
    "lines_read": "line read",
    "lines_written": "line written",
    "lines_only_written": "line only written",
    "pages": "page",
}
"""The short name of each quantity, as printed after a number."""

IN_FUNCTIONS = ("instructions", "loads", "stores", "locked", "streaming", "fences")
"""The quantities that are printed per function."""

LABEL = 10
NAME = 21
CELL, LEAST_CELL = 12, 10
MOST_CALLERS = 2
MOST_FUNCTIONS = 4
"""How many functions are named for each variant; --json has all of them."""
DIGITS = 2
LEAST = 0.005
"""The smallest absolute difference that does not print as 0."""


def render(summary: Summary, head: Iterable[str]) -> str:
    """The complete table, ending in a newline."""
    apart = folded_names(summary.rows)
    rows = [row for row in summary.rows if row.row not in apart]
    blocks: list[Iterable[str]] = [head, *map(_row, rows)]
    blocks.append(_all("not run", map(str, folded(summary.rows))))
    blocks.append(in_short(rows))
    blocks.append(_all("doubt", summary.doubts))
    return "\n\n".join(text for block in blocks if (text := "\n".join(block))) + "\n"


def unit_words(per: str, number: int) -> str:
    """What averages are of, above their table; number: of these in a sample."""
    if per == "call":
        return "a call"
    return f"for each of {counted(number, per, 'entries' if per == 'entry' else None)}"


def _row(row: RowResult) -> Iterator[str]:
    yield from textwrap.wrap(
        f"{row.row}: {row.title or '?'}", width(), subsequent_indent="  ", break_on_hyphens=False
    )
    its = row.counted
    if its is None:
        yield from _all("note", row.notes, indent=2)
        return
    names = _shown(its)
    yield from _line(unit_words(its.per, its.number), names)
    yield from _all("numbers", filter(None, [_other_numbers(its, names)]), indent=2)
    for quantity in _differing(its, names):
        cells = [fit(_each(its, name, quantity), CELL - 1) for name in names]
        yield from _line(QUANTITIES[quantity], cells)
    yield from _all("alike", filter(None, [_alike(its, names)]), indent=2)
    yield from _all("where", where(its, names), indent=2)
    yield from _all("calls", with_calls(its, names), indent=2)
    yield from _all("stand-ins", filter(None, [_stand_ins(its, names)]), indent=2)
    yield from _steps(its)
    if not its.repeats:
        yield from _all("MOVES", [_moves(its)], indent=2)


def _other_numbers(its: Counted, names: Sequence[str]) -> str:
    """Which variants did another number than the head of the table says."""
    said = [f"{name} {its.numbers[name]:,}" for name in names if name in its.numbers]
    return f"each is of what the variant did: {', '.join(said)}" if said else ""


def _shown(its: Counted) -> list[str]:
    """Variants with a column of their own: those that only represent a patch step have a line."""
    steps = {name for one in its.steps for name in (one.before, one.after)} - {*its.own}
    return [name for name in its.variants if not is_copy(name) and name not in steps]


def _each(its: Counted, name: str, quantity: str) -> float:
    return its.variants[name].get(quantity, 0) / its.number_of(name)


def _differing(its: Counted, names: Sequence[str]) -> Iterator[str]:
    """Instructions, and every other quantity that differs between these variants."""
    for quantity in QUANTITIES:
        values = {_each(its, name, quantity) for name in names}
        if quantity == "instructions" or len(values) > 1:
            yield quantity


def _alike(its: Counted, names: Sequence[str]) -> str:
    """The quantities that all variants have in common and that are not 0, as text."""
    differing = {*_differing(its, names)}
    return ", ".join(
        f"{QUANTITIES[quantity]} {fit(value, 9)}"
        for quantity in QUANTITIES
        if quantity not in differing and (value := _each(its, names[0], quantity))
    )


def where(its: Counted, names: Sequence[str]) -> Iterator[str]:
    """For each variant, a line with the functions that differ from `before`, the largest first."""
    if BEFORE not in its.functions:
        return
    for name in names:
        if name == BEFORE:
            continue
        apart = differences(its, BEFORE, name)
        said = [f"{function}() {_signed(numbers)}" for function, numbers in apart[:MOST_FUNCTIONS]]
        if len(apart) > MOST_FUNCTIONS:
            said.append(f"and {len(apart) - MOST_FUNCTIONS} more")
        yield f"{name}: {'; '.join(said) or 'no function differs'}"


def with_calls(its: Counted, names: Sequence[str]) -> Iterator[str]:
    """Functions of both variants that differ otherwise with what they call than without it.

    One that differs as much as the whole sample is the root of it, or leads there alone.
    """
    for name in names:
        if name == BEFORE or not {BEFORE, name} <= its.inclusive.keys():
            continue
        own = dict(differences(its, BEFORE, name))
        both = its.inclusive[BEFORE].keys() & its.inclusive[name].keys()
        numbers_of = _numbers_of(its, BEFORE, name)
        whole = _change(its.variants[BEFORE], its.variants[name], numbers_of)
        said = [
            f"{function}() {_signed(numbers)}"
            for function, numbers in _apart(its.inclusive[BEFORE], its.inclusive[name], numbers_of)
            if function in both and numbers != own.get(function) and not _is_whole(numbers, whole)
        ]
        if said:
            yield f"{name}, with what is called: {'; '.join(said[:MOST_CALLERS])}"


def _is_whole(numbers: Mapping[str, float], whole: Mapping[str, float]) -> bool:
    """Whether a function differs by as many instructions as the sample, but for 1 %."""
    its, all_of_it = (one.get("instructions", 0.0) for one in (numbers, whole))
    return abs(its - all_of_it) <= abs(all_of_it) / 100


Differences = list[tuple[str, Mapping[str, float]]]


def differences(its: Counted, before: str, after: str) -> Differences:
    """Functions in which two variants differ, by how much for each page, the largest first."""
    return _apart(its.functions[before], its.functions[after], _numbers_of(its, before, after))


def _numbers_of(its: Counted, before: str, after: str) -> tuple[int, int]:
    return its.number_of(before), its.number_of(after)


_Numbers = Mapping[str, Mapping[str, int]]


def _apart(old: _Numbers, new: _Numbers, units: tuple[int, int]) -> Differences:
    found: Differences = []
    for function in {**old, **new}:
        numbers = _change(old.get(function, {}), new.get(function, {}), units)
        if numbers:
            found.append((function, numbers))
    return sorted(found, key=lambda one: (-abs(one[1].get("instructions", 0)), one[0]))


def _change(
    old: Mapping[str, int], new: Mapping[str, int], units: tuple[int, int]
) -> dict[str, float]:
    """What differs, for each unit. units: how many the old counts are of, and the new ones."""
    each = {
        quantity: (old.get(quantity, 0) / units[0], new.get(quantity, 0) / units[1])
        for quantity in QUANTITIES
    }
    return {quantity: now - was for quantity, (was, now) in each.items() if was != now}


def _signed(numbers: Mapping[str, float]) -> str:
    """Differences as text, such as `-212.00 instr -1.00 locked`, without those that print as 0."""
    shown = {name: value for name, value in numbers.items() if name in IN_FUNCTIONS}
    said = [
        f"{value:+.{DIGITS}f} {SHORT[name]}" for name, value in shown.items() if abs(value) >= LEAST
    ]
    return " ".join(said) or f"less than {LEAST} a page"


def _stand_ins(its: Counted, names: Sequence[str]) -> str:
    """The counts of our substitutes for kernel functions, which no other number includes."""
    return "; ".join(
        f"{name} "
        + " ".join(
            f"{fit(number / its.number_of(name), 9)} {SHORT[quantity]}"
            for quantity in ("instructions", "locked")
            if (number := its.stand_ins[name].get(quantity, 0))
        )
        for name in names
        if its.stand_ins.get(name)
    )


def _steps(its: Counted) -> Iterator[str]:
    """One line for each patch, with its difference from the patch before it."""
    of = ""
    for step in its.steps:
        if step.of != of:
            of = step.of
            yield from _all("patches", [f"of {of}, each against the one before it"], indent=2)
        numbers_of = _numbers_of(its, step.before, step.after)
        change = _change(its.variants[step.before], its.variants[step.after], numbers_of)
        yield from textwrap.wrap(
            f"{step.subject}: {_signed(change) if change else 'counts equal'}",
            width(),
            initial_indent=" " * (LABEL + 2),
            subsequent_indent=" " * (LABEL + 4),
            break_on_hyphens=False,
        )


def _moves(its: Counted) -> str:
    copies = [name for name in its.variants if is_copy(name)]
    beside = ", ".join(f"{name} {fit(_each(its, name, 'instructions'), 9)}" for name in copies)
    return (
        "two samples of one kernel did not count the same, so these numbers are of one sample"
        f" alone: {beside or 'see samples.jsonl'} instructions"
    )


def in_short(rows: Sequence[RowResult]) -> Iterator[str]:
    """One line for each row, with the instructions of each variant; nothing of fewer than three."""
    having = [(row, row.counted) for row in rows if row.counted is not None]
    if len(having) < LEAST_ROWS:
        return
    names = _shown(having[0][1])
    yield "in short: instructions for each page or entry"
    labels = [row.row + ("" if its.repeats else " (moves)") for row, its in having]
    longest = max(NAME, *map(len, labels))
    name = longest if longest + 2 + LEAST_CELL * len(names) <= width() else NAME
    yield from _line("", names, name)
    for label, (_, its) in zip(labels, having, strict=True):
        cells = [fit(_each(its, one, "instructions"), CELL - 1) for one in _shown(its)]
        yield from _line(label, cells, name)


LEAST_ROWS = 3
"""The smallest number of rows for which the short form is printed."""


def _line(label: str, cells: Sequence[str], name: int = NAME) -> Iterator[str]:
    """A line of a table; name: columns that its label may have, or it stands on a line above."""
    if len(label) > name:
        yield f"  {label}"
        label = ""
    room = min(CELL, max(LEAST_CELL, (width() - name - 2) // max(1, len(cells))))
    yield from table_line(f"  {label:<{name}}", [f"{cell:>{room}}" for cell in cells])


def _all(label: str, texts: Iterable[str], *, indent: int = 0) -> Iterator[str]:
    for text in texts:
        yield from textwrap.wrap(
            text,
            width(),
            initial_indent=f"{' ' * indent}{label:<{LABEL}}",
            subsequent_indent=" " * (indent + LABEL),
            break_on_hyphens=False,
        )
