# SPDX-License-Identifier: GPL-2.0-only
"""Prints replications for people, in plain ASCII with fewer than 100 columns."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ream.counted import counted
from ream.experiment import BEFORE, PUBLISHED, shown, shown_in
from ream.measure.verdict import CONTROLS, Word
from ream.published import NS, RATIO_UNIT
from ream.replicate.claims import Claim
from ream.replicate.defence import defence
from ream.replicate.outcome import Line, Replication
from ream.replicate.rule import counted_words
from ream.replicate.why import NOT_SAID, PART, Bound, bound, differences, same_measurements
from ream.report.explain import parts_of
from ream.report.grid import RATE
from ream.report.numbers import fit, interval, scale_of
from ream.report.reasons import Reasons
from ream.report.shared import together
from ream.report.table import MOST_WHOLE
from ream.report.words import explained
from ream.width import table_line, width

WIDEST = 98

TOO_WIDE = 100
"""A line of the table has fewer columns."""

LABEL = 10
NAME = 19
PAIR = 16
RATIO = 7
HERE = 15
CLAIMED = 8
"""Width of the published ratio where a terminal has no room for values."""
INTERVAL = 18
FLOOR = 5
WIDEST_FLOOR = 9.99
"""The largest floor that fits its column."""
PART_NUMBER = 12
"""Width of a number in the table of parts."""
NUMBER = 11
"""Width of a number in the table of bounds."""
LEAST = 0.1
"""Below it four digits of a value measured here need more than its column has."""

NOT_RUN: Word = "not-run"
CONTROL = "a control: it claims less than 10 %, and does not decide about the table"
REFERENCE = "what others are compared with"

HOW_TO_READ = (
    "before -> after in {unit}; ratio = time after / time before, lower is faster{rates}; here "
    "with its 95 % interval over launches; floor = how far before is from its own second copy. "
    + explained("inconclusive", "technique", "weaker")
)


def render(replications: Sequence[Replication], *, rows: bool = True) -> str:
    """What was found in short, if there are several tables, and all tables one after the other.

    rows: with what bounds each line, and why it may differ here. Without them, of more than
    MOST_WHOLE tables only the verdicts are printed.
    """
    whole = rows or len(replications) <= MOST_WHOLE
    blocks = ["\n".join(_in_short(replications, whole))] if len(replications) > 1 else []
    blocks += ["\n".join(_table(one, rows=rows)) for one in replications if whole]
    if not rows:
        blocks.append("\n".join(_more(replications, whole=whole)))
    return _ascii("\n\n".join(blocks) + "\n")


def _more(replications: Sequence[Replication], *, whole: bool) -> Iterator[str]:
    """Where the rest is."""
    what = "why lines may differ here, and what bounds them" if whole else "each line of all tables"
    measured = any(one.sources for one in replications)
    again = " With `--record RUN` it measures nothing again." if measured else ""
    yield from textwrap.wrap(f"--rows prints {what}.{again}", _room(), break_on_hyphens=False)


def _room() -> int:
    return min(WIDEST, width())


def _ascii(text: str) -> str:
    """The text in printable ASCII: titles come from mails and must suit any terminal and mailer."""
    plain = text.encode("ascii", "backslashreplace").decode("ascii")
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in plain)


def _table(replication: Replication, *, rows: bool) -> Iterator[str]:
    table = replication.table
    yield from textwrap.wrap(f"{table.id}: {table.title}", _room())
    for label, said in about(replication):
        yield from _said(label, said)
    reasons = Reasons()
    yield ""
    yield from _lines(replication, reasons)
    for letter, reason, its in reasons.found():
        whose = f"its row{'s' if len(its) > 1 else ''} {', '.join(its)}: " if its else ""
        yield from _said(f"  {letter}", whose + reason)
    for said in counts(replication):
        yield from _said("  counts", said)
    yield ""
    if rows:
        yield from _why(replication)
        yield ""
    for label, said in how_to_read(replication):
        yield from _said(label, said)


def about(replication: Replication) -> Iterator[tuple[str, str]]:
    """Whose a table is, what it claims, and the verdict on it, each with its label."""
    table = replication.table
    date = table.date.isoformat() if table.date else "date not said"
    yield "by", f"{table.author}, {date}"
    if table.claims:
        yield "claims", table.claims
    yield "verdict", verdict_words(replication)
    yield "fair", defence(replication)
    yield "there", table.machine
    yield "here", replication.machine.line()


def how_to_read(replication: Replication) -> Iterator[tuple[str, str]]:
    """What the numbers are, and the records that they are of, each with its label."""
    scale, unit = _scale(replication)
    _, own_unit = _own_scale(replication, scale, unit)
    units = unit if own_unit == unit else f"{unit}, and here in {own_unit}"
    rates = ", of rates turned over" if unit == RATE else ""
    yield "read", HOW_TO_READ.format(unit=units, rates=rates)
    yield "record", ", ".join(source.name for source in replication.sources) or "none"


def _scale(replication: Replication) -> tuple[float, str]:
    """The factor for the table's values that avoids small fractions, and the resulting unit."""
    units = {line.claim.printed.unit for line in replication.lines}
    if len(units) != 1:
        return 1.0, "the unit that its name ends in"
    (unit,) = units
    if unit == RATIO_UNIT:
        return 1.0, "ms"  # of ours; theirs has no values
    if unit not in NS:
        return 1.0, unit
    values = [v for line in replication.lines for v in _printed(line) if v]
    scale, name = scale_of([value * NS[unit] for value in values] or [NS[unit]], "ns")
    return NS[unit] / scale, name


def _own_scale(replication: Replication, scale: float, unit: str) -> tuple[float, str]:
    """The same of what was measured here: another one where a whole program was published."""
    units = {line.claim.printed.unit for line in replication.lines}
    own = [v for line in replication.lines for v in _measured(line) if v]
    if not own or min(own) * scale >= LEAST or len(units) != 1 or not units <= NS.keys():
        return scale, unit
    (claimed,) = units
    divisor, name = scale_of([value * NS[claimed] for value in own], "ns")
    return NS[claimed] / divisor, name


def _measured(line: Line) -> tuple[float | None, float | None]:
    return line.here(BEFORE), line.here(PUBLISHED)


def _printed(line: Line) -> tuple[float | None, float | None]:
    return line.claim.printed.before, line.claim.printed.published


def params(replication: Replication) -> str:
    """The names of the parameters that a table's lines have."""
    return ", ".join(dict.fromkeys(name for line in replication.table.rows for name in line.params))


def _lines(replication: Replication, reasons: Reasons) -> Iterator[str]:
    *heads, head = textwrap.wrap(params(replication), NAME - 1)
    yield from (f"  {part}" for part in heads)
    there = f"{'claimed':>{PAIR}}{'ratio':>{RATIO}}" if _is_wide() else f"{'claimed':>{CLAIMED}}"
    here = f"{'here':>{HERE}}  {'ratio':<{INTERVAL}}" if _is_wide() else f"  {'here':<{INTERVAL}}"
    yield from table_line(f"  {head:<{NAME}}", [there, here, f" {'floor':<{FLOOR}} verdict"])
    for line in cells(replication):
        yield from _line(line, reasons)
    if replication.controls:
        yield from textwrap.wrap(
            f"  *       {CONTROL}",
            _room(),
            subsequent_indent=" " * 10,
        )


@dataclass(frozen=True)
class Cells:
    """The texts of a line of the table; empty where there is nothing to say."""

    name: str
    is_control: bool
    there: str
    claimed: str
    here: str
    ratio: str
    floor: str
    word: str
    """The verdict; empty for what others are compared with."""
    why: str
    """The reason for the verdict, unless the line agrees."""
    would_try: str | None


def cells(replication: Replication) -> Iterator[Cells]:
    """The texts of each line of the table."""
    scale, unit = _scale(replication)
    own, _ = _own_scale(replication, scale, unit)
    for line in replication.lines:
        yield _cells(line, scale, own, is_control=line in replication.controls)


def _cells(line: Line, scale: float, own: float, *, is_control: bool) -> Cells:
    printed = line.claim.printed
    there, word, why = _pair(*_printed(line), scale, 6), "", ""
    if line.verdict is None:
        value = printed.before if printed.published is None else printed.published
        there = _value(value, scale, 6)
    else:
        word = line.control if is_control else line.verdict.word
        plain = line.verdict.word == "agrees" or word == CONTROLS[0]
        why = "" if plain else shown_in(line.verdict.reason)
    tried = line.verdict is not None and line.ratio is not None
    return Cells(
        name=line_label(line.claim),
        is_control=is_control,
        there=there,
        claimed="" if printed.ratio is None else fit(printed.ratio, 5, 3),
        here=_pair(*_measured(line), own, 4) if tried else "",
        ratio=_interval(line) if tried else "",
        floor=_floor(line) if tried else "",
        word=word,
        why=why,
        would_try=line.would_try,
    )


def _line(its: Cells, reasons: Reasons) -> Iterator[str]:
    mark = "*" if its.is_control else " "
    *before, name = textwrap.wrap(its.name, NAME - 1) or ["?"]
    for part in before:
        yield f"{mark} {part}"
        mark = " "
    text = f"{mark} {name:<{NAME}}"
    if not its.word:
        there = f"{its.there:>{PAIR if _is_wide() else CLAIMED}}"
        yield from table_line(text, [there, f"  {REFERENCE}"])
        return
    there = f"{its.there:>{PAIR}}{its.claimed:>{RATIO}}"
    here = f"{its.here:>{HERE}}" if its.ratio else ""
    if not _is_wide():  # without the values, of which the ratios are
        there, here = f"{its.claimed:>{CLAIMED}}", " " if its.ratio else ""
    if its.ratio:
        here += f" {its.ratio:<{INTERVAL}} {its.floor:<{FLOOR}}"
    letter = f" {reasons.letter(its.why, its.would_try)}" if its.why else ""
    said = f"{' ' if here else '  '}{its.word}{letter}"
    if _is_wide() and len(text) + len(there) + len(here) + len(said) >= TOO_WIDE:
        yield f"{text}{there}{here}".rstrip()
        yield said.strip().rjust(WIDEST)
        return
    yield from table_line(text, [there, here, said])


def _is_wide() -> bool:
    """Whether there is room for the values that ratios are of."""
    return _room() == WIDEST


def line_label(claim: Claim) -> str:
    """The values of a line's parameters, and the quantity."""
    words = ", ".join(map(claim.printed.param, claim.line.params))
    return f"{words}: {claim.value}" if claim.value else words


def _value(value: float | None, scale: float, digits: int) -> str:
    """A number with at most `digits` significant digits and never an exponent."""
    if value is None:
        return "?"
    text = f"{value * scale:.{digits}g}"
    return text if "e" not in text else f"{value * scale:.0f}"


def _pair(before: float | None, after: float | None, scale: float, digits: int) -> str:
    if before is None and after is None:
        return ""
    return f"{_value(before, scale, digits)} -> {_value(after, scale, digits)}"


def _interval(line: Line) -> str:
    ratio = line.ratio
    if ratio is None:
        return ""
    if ratio.low is None or ratio.high is None:
        return fit(ratio.ratio, 5, 3)
    return f"{fit(ratio.ratio, 5, 3)} [{fit(ratio.low, 4)}..{fit(ratio.high, 4)}]"


def _floor(line: Line) -> str:
    """How far the floor's interval reaches from 1, in per cent."""
    floor = line.floor
    if floor is None or floor.low is None or floor.high is None:
        return "?"
    reach = max(floor.high, 1 / floor.low) - 1
    if reach > WIDEST_FLOOR:
        return f">{100 * WIDEST_FLOOR:.0f}%"
    return f"{100 * reach:.0f}%" if reach >= 0.1 else f"{100 * reach:.1f}%"  # noqa: PLR2004


def counts(replication: Replication) -> Iterator[str]:
    """What kernels of the table's architecture execute for its lines; a count has no verdict."""
    for line in replication.lines:
        for one in line.counts:
            yield (
                f"{line_label(line.claim)}: {one.before:.1f} -> {one.published:.1f} instructions "
                f"for each {one.per} ({one.ratio:.3f}), kernels of "
                f"{replication.table.architecture}, row {one.row} of {one.record}; a count is no "
                "time and has no verdict"
            )


def why_it_may_differ(replication: Replication) -> Iterator[tuple[str, str]]:
    """What differs between there and here, each with its label."""
    for one in differences(replication):
        if one.what == PART:  # a table has them
            continue
        text = f"{one.there} there; {one.here} here" if one.here else one.there
        if one.there == NOT_SAID:
            text = f"{one.here} here; {NOT_SAID} there"
        yield one.what, text


def _why(replication: Replication) -> Iterator[str]:
    yield "why it may differ"
    for what, text in why_it_may_differ(replication):
        yield from _said(f"  {what}", text)
    yield from _parts(replication)
    measured = [(line, its) for line in replication.lines if (its := bound(line)) is not None]
    if not measured:
        return
    yield ""
    is_bound = all(its.is_bound for _, its in measured)
    near, most = ("of limit", "at most") if is_bound else ("of loop", "loop")
    head = "what bounds it here" if is_bound else "beside a plain loop here"
    columns = ("GB", "times L3", near, most, "claimed", "found")
    yield from _bounds_line(head, columns)
    for line, its in measured:
        yield from _bound(line, its)
    how = _how_bounds if is_bound else _how_loops
    yield from _said("  read", how(replication, [its for _, its in measured]))
    for line, its in measured:
        yield from _beyond(line, its)


def _parts(replication: Replication) -> Iterator[str]:
    """The part of a call that each row times, on the running kernel and hosted; and the rest."""
    rows = {line.row.row: line.row for line in replication.lines if line.row}
    wholes = [(name, row, row.whole) for name, row in rows.items() if row.whole is not None]
    if not wholes:
        return
    yield ""
    room = max(len(name) for name in (wholes[0][2].name, *rows)) + 2
    heads = "share", "live ms", "hosted ms", "live/hosted"
    yield from _parts_line(f"part of {wholes[0][2].name}", room, heads, "of all of it")
    for name, row, whole in wholes:
        parts = parts_of(row)
        times = (None, None) if parts is None else (parts.live_ns / 1e6, parts.hosted_ns / 1e6)
        cells = (
            "?" if whole.share is None else f"{100 * whole.share:.3g} %",
            *("?" if one is None else fit(one, 7) for one in times),
            "?" if parts is None else fit(parts.ratio, 4, 2),
        )
        yield from _parts_line(name, room, cells, interval(whole.ratio) if whole.ratio else "")
    left = {whole.how: f"{fit(whole.left_out_ns / 1e6, 5)} ms, {whole.how}" for *_, whole in wholes}
    yield from _said(
        "  read",
        "share = of the whole call on the running kernel, of which this part is timed here in"
        f" hosted code; left out: {together([*left.values()])}; a verdict is of the ratio that all"
        " of it would have, where live and hosted do not differ much",
    )


def _parts_line(name: str, room: int, cells: Sequence[str], ratio: str) -> Iterator[str]:
    padded = [f"{cell:>{PART_NUMBER}}" for cell in cells]
    yield from table_line(f"  {name:<{room}}", padded, [f"  {ratio}"])


def _beyond(line: Line, its: Bound) -> Iterator[str]:
    """What is impossible by the limit, or that more than it allows was found."""
    if its.is_in_error:
        yield from _said(
            "  error",
            f"{line_label(line.claim)}: up to {its.found:.2f}x was found here, where the limit "
            f"allows {its.factor:.2f}x; so the limit is in error, and no bound is stated",
        )
    elif (gain := line.gain_published) is not None and its.excludes(gain):
        yield from _said(
            "  beyond",
            f"{line_label(line.claim)}: {gain:.2f}x is published; before is at "
            f"{its.of_limit:.2f} of the limit here, so no more than {its.most:.2f}x can be "
            f"gained with {_cpus(its.threads)}",
        )


def _bound(line: Line, its: Bound) -> Iterator[str]:
    *before, name = textwrap.wrap(line_label(line.claim), NAME + 4) or ["?"]
    yield from (f"  {part}" for part in before)
    factor = its.most if its.is_bound else its.factor
    cells = (
        fit(its.nr_bytes / 1e9, 6, 3),
        fit(its.of_l3, 6, 1),
        "?" if its.of_limit is None else f"{fit(its.of_limit, 5)} -> {fit(its.after, 5)}",
        "?" if factor is None else f"{fit(factor, 6)}x",
        "?" if line.gain_published is None else f"{fit(line.gain_published, 6)}x",
        "?" if line.gain_here is None else f"{fit(line.gain_here, 6)}x",
    )
    yield from _bounds_line(name, cells)


def _bounds_line(name: str, cells: Sequence[str]) -> Iterator[str]:
    """A line with what ratios there are, and with the sizes before them where they fit."""
    padded = [f"{cell:>{NUMBER + 4 * (n == 2)}}" for n, cell in enumerate(cells)]  # noqa: PLR2004
    yield from table_line(f"  {name:<{NAME + 5}}", padded if _is_wide() else padded[2:])


def _how_loops(replication: Replication, bounds: Sequence[Bound]) -> str:
    kinds = ", ".join(
        dict.fromkeys(f"{its.how} with {_cpus(its.threads)}" for its in bounds if its.of_limit)
    )
    return (
        f"{_bytes_words(replication)}; of loop = of a plain loop: the time of {kinds or 'a loop'} "
        f"over that of before -> {shown(PUBLISHED)}, without what else the call has to do in the "
        "latter; loop = the inverse of the former. A plain loop is something to compare with and "
        "no bound: other code may be faster"
    )


def _bytes_words(replication: Replication) -> str:
    what = {line.row.bytes_of for line in replication.lines if line.row is not None}
    counted = "of memory map" if what == {"map"} else "of memory moved"
    return f"GB {counted} in one sample, which up to 1 times the L3 may stay cached"


def _how_bounds(replication: Replication, bounds: Sequence[Bound]) -> str:
    kinds = ", ".join(
        dict.fromkeys(f"{its.how} with {_cpus(its.threads)}" for its in bounds if its.of_limit)
    )
    said = _bytes_words(replication)
    if not kinds:
        return f"{said}; nothing ran beside it that would be a limit"
    return (
        f"{said}; of limit = time of the fastest fill or copy of the same bytes over that of "
        f"before -> {shown(PUBLISHED)}, 1 is all the hardware gives (for before: {kinds}); at most "
        "= the inverse of the former, with as many CPUs"
    )


def _cpus(threads: int | None) -> str:
    return f"{threads} CPUs" if threads is None else counted(threads, "CPU")


def verdict_words(replication: Replication) -> str:
    """The verdict on a table, and the counts that it derives from."""
    deciding, controls = replication.deciding, replication.controls
    if not (deciding or controls):
        return f"{replication.word}: none of its lines compares {shown(PUBLISHED)} with {BEFORE}"
    modelled = any(line.judged.word == "modelled" for line in deciding)
    tried = sum(line.tried and line.judged.word != "modelled" for line in deciding)
    claiming = any(line.claim.substantial for line in deciding)
    which = "that claim 10 % or more" if claiming else "that claim less than 10 %, as all do here,"
    words = counted_words(line.judged.word for line in deciding)
    said = (
        f"{replication.word}: {words}; {tried or 'none'} of {len(deciding)}"
        f" {which} could be tried{' without a model of the device' if modelled else ''}"
    )
    if replication.too_few:
        said += ", fewer than half, which is too few for a verdict on the table"
    return f"{said}; {_controls(controls)}" if controls else said


def _controls(controls: Sequence[Line]) -> str:
    """The outcomes of the lines that claim less than 10 %."""
    counts = Counter(line.control for line in controls)
    tried = len(controls) - counts["not tried"] - counts["modelled"]
    if not tried:
        model = f" without a model, {counts['modelled']} modelled" if counts["modelled"] else ""
        return f"controls: none of {len(controls)} could be tried{model}"
    told = [f"controls: {counts['as published']} of {tried} as published"]
    told += [f"{counts[one]} {one}" for one in CONTROLS[1:] if counts[one]]
    return ", ".join(told)


def _in_short(replications: Sequence[Replication], whole: bool) -> Iterator[str]:
    """A line for each table; where tables do not follow, those that were not run are one line."""
    yield "in short"
    for one in replications:
        if whole or one.word != NOT_RUN:
            yield from textwrap.wrap(
                f"  {one.table.id:<33} {verdict_words(one)}",
                _room(),
                subsequent_indent=" " * (36 if _room() == WIDEST else 4),
            )
    left = [one.table.id for one in replications if one.word == NOT_RUN]
    if left and not whole:
        said = f"{counted(len(left), 'table')} could not be tried here: {', '.join(left)}"
        yield from _said(NOT_RUN, said)
    for ids in same_measurements(replications):
        said = "rest on the same measurement, and are one piece of evidence"
        yield from _said("once", f"{', '.join(ids)} {said}")


def _said(label: str, text: str) -> Iterator[str]:
    yield from textwrap.wrap(
        f"{label:<{LABEL}}{text}",
        _room(),
        subsequent_indent=" " * LABEL,
        break_on_hyphens=False,
    ) or [label]
