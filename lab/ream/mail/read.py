# SPDX-License-Identifier: GPL-2.0-only
"""Reads published tables from a mail: finds the layout, and ignores no number silently."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise

from pydantic import ValidationError

from ream.errors import BadUsage
from ream.folders import default
from ream.mail import about, bars, columns, logs, prose
from ream.mail.layout import Parsed, TableFamily
from ream.mail.left import Left, quoted, unread
from ream.mail.text import MailLine, lines_of, place_of
from ream.mail.thread import MailSource, sources_of
from ream.published import Table
from ream.values import faults

LAYOUTS = (
    TableFamily("bindings", logs.BINDINGS, logs.binding_starts, logs.read_bindings),
    TableFamily("private", prose.PRIVATE, prose.private_starts, prose.read_private),
    TableFamily("threads", columns.THREADS, columns.threads_starts, columns.read_by_threads),
    TableFamily("boot-log", logs.BOOT_LOG, logs.boot_starts, logs.read_boot_log),
    TableFamily("folio-size", bars.FOLIO_KIB, bars.folio_starts, bars.read_by_folio),
    TableFamily("channels", bars.CHANNELS, bars.channels_starts, bars.read_by_channels),
    TableFamily("modes", columns.MODES, columns.mode_starts, columns.read_by_mode),
)
"""Every known layout. Experiments name those of their tables."""

NOT_SAID = "not said"
"""The value of a required field that the mail does not contain."""

_SKELETON = """\
a result without a table is written by hand (docs/format.md, "A table in TOML"), for example
  [[table]]
  id = "mine"
  experiment = "{experiment}"
  title = "{title}"
  author = "{author}"
  machine = "not said"
  method = "as the sentence says"
  unit = "ratio published/before"
  better = "lower"
  approximate = true
  rows = [ {{ params = {{ config = "what was measured" }}, values = {{ published = 1.0 }} }} ]"""


@dataclass(frozen=True)
class Imported:
    """The tables of a text, and a line for each possible result outside them."""

    tables: tuple[tuple[Table, Parsed], ...]
    left: tuple[str, ...]


@dataclass(frozen=True)
class _One:
    layout: TableFamily
    parsed: Parsed
    source: MailSource

    @property
    def first(self) -> int:
        return min(self.parsed.lines)


@dataclass
class _Reading:
    """The tables and faults found so far."""

    tables: list[_One] = field(default_factory=list)
    faults: list[Left] = field(default_factory=list)
    """Tables that are damaged."""
    others: list[Left] = field(default_factory=list)


def import_text(mail: bytes, facts: Mapping[str, str | None]) -> Imported:
    """Read every table of a mail or of a thread, with the facts in its text.

    facts: id, experiment, title, author and machine if the user gives them; they override the mail.
    Raises BadUsage if there is no table, with everything that may be one.
    """
    lines = lines_of(mail)
    sources = sources_of(lines)
    reading = _Reading()
    for source in sources:
        _read(source, reading)
    _drop_quotations(reading)
    if not reading.tables:
        raise BadUsage(_nothing(lines, sources, reading))
    _only_of(facts.get("experiment"), reading)
    left = {str(one): one.number for one in (*reading.faults, *reading.others)}
    return Imported(tuple(_named(reading.tables, facts)), tuple(sorted(left, key=left.__getitem__)))


def _read(source: MailSource, reading: _Reading) -> None:
    """Add the tables of one mail. If two share a line, the larger is used.

    Damaged tables are faults.
    """
    candidates, damaged = _candidates(source)
    taken, named = set[int](), set[int]()
    chosen: list[_One] = []
    for one in sorted(candidates, key=lambda one: -len(one.parsed.lines)):
        if taken.isdisjoint(one.parsed.lines):
            taken |= one.parsed.lines | one.parsed.skipped.keys()
            chosen.append(one)
    for text, said in damaged:
        if text[0].number not in taken:
            reading.faults.append(_fault(text[0], said))
            named |= _paragraph(text, text[0].number, text[0].number, taken)
    by_number = {line.number: line for line in source.lines if line.text}
    for one in chosen:
        if (fault := _left_out(source.lines, one, frozenset(taken))) is not None:
            reading.faults.append(_fault(by_number[one.first], fault))
            named |= _paragraph(source.lines, one.first, max(one.parsed.lines), taken)
            continue
        reading.tables.append(one)
        reading.others += [
            Left(number, f"{quoted(by_number[number])}: {why}")
            for number, why in one.parsed.skipped.items()
        ]
    reading.others += unread(source.lines, frozenset(taken | named))


def _candidates(source: MailSource) -> tuple[list[_One], list[tuple[Sequence[MailLine], str]]]:
    """The tables that each layout recognises, and the lines of damaged ones with the fault."""
    found: list[_One] = []
    damaged: list[tuple[Sequence[MailLine], str]] = []
    for layout in LAYOUTS:
        for start, end in pairwise([*layout.starts(source.lines), len(source.lines)]):
            try:
                parsed = layout.read(source.lines, start, end)
            except BadUsage as cause:
                damaged.append((source.lines[start:end], str(cause)))
                continue
            if parsed is not None:
                found.append(_One(layout, parsed, source))
    return found, damaged


def _fault(head: MailLine, said: str) -> Left:
    return Left(head.number, said if said.startswith("line ") else f"{quoted(head)}: {said}")


def _paragraph(lines: Sequence[MailLine], first: int, last: int, taken: set[int]) -> set[int]:
    """The numbers of a damaged table's lines, up to the blank line after its last one."""
    found: set[int] = set()
    for place in range(place_of(lines, first), len(lines)):
        line = lines[place]
        if line.number > last and (not line.text or line.number in taken):
            break
        found.add(line.number)
    return found


def _left_out(lines: Sequence[MailLine], one: _One, taken: frozenset[int]) -> str | None:
    """The reason why a table is incomplete: a line that may belong to it, but was not understood.

    Text around a table is ignored. A line between those of the table, or one that follows the last
    without a blank line or a sentence, may be a row that a mailer has broken. None if it is
    complete.
    """
    last = max(one.parsed.lines)
    for place in range(place_of(lines, one.first), len(lines)):
        line = lines[place]
        if line.number in taken:
            if line.number > last:  # another table begins
                break
            continue
        if line.number > last and (not line.text or line.is_trailer or line.is_sentence):
            break
        if line.is_sentence:
            continue
        if line.looks_like_data:
            return (
                f"{quoted(line)}: not understood; the layout {one.layout.name!r} looks like "
                f"{one.layout.looks_like}"
            )
    if one.parsed.lacks is not None:
        return one.parsed.lacks
    if not one.parsed.rows:
        said = quoted(next(line for line in lines[place_of(lines, last) :] if line.text))
        return f"{said}: no line of the table follows it"
    return None


def _drop_quotations(reading: _Reading) -> None:
    """Remove each table that only quotes a complete one of another mail."""
    kept: list[_One] = []
    for one in sorted(reading.tables, key=lambda one: (one.source.quoted, one.first)):
        rows = one.parsed.rows
        same = (
            other
            for other in (kept if one.source.quoted else ())
            if other.layout == one.layout and all(row in other.parsed.rows for row in rows)
        )
        if (original := next(same, None)) is None:
            kept.append(one)
            continue
        lines = one.source.lines
        line = next(line for line in lines[place_of(lines, one.first) :] if line.text)
        said = f"a quotation of the table of line {original.first}; it is there once"
        reading.others.append(Left(one.first, f"{quoted(line)}: {said}"))
    reading.tables = sorted(kept, key=lambda one: one.first)


def _only_of(experiment: str | None, reading: _Reading) -> None:
    if experiment is None:
        return
    for one in [one for one in reading.tables if one.layout.experiment != experiment]:
        reading.tables.remove(one)
        said = f"the layout {one.layout.name!r} has tables of {one.layout.experiment}"
        reading.others.append(Left(one.first, f"line {one.first}: left out: {said}"))
        if not reading.tables:
            raise BadUsage(f"--experiment {experiment}: {said}")


def _nothing(lines: Sequence[MailLine], sources: Sequence[MailSource], reading: _Reading) -> str:
    """The error for a text without a table: everything in it that may be a result."""
    told = [line for line in lines if line.text]
    if not told:
        return "there is no text to read a table from"
    if reading.faults:
        return "\n".join(str(one) for one in (*reading.faults, *reading.others))
    seen = sorted(reading.others, key=lambda one: one.number)
    if not seen:
        first = next((line for line in told if line.looks_like_data), told[0])
        seen = [Left(first.number, f"{quoted(first)}: not understood")]
    known = "".join(f"\n  {one.name}: {one.looks_like}" for one in LAYOUTS)
    said = "\n".join(str(one) for one in seen) + f"; the layouts known are{known}"
    if any(one.by_hand for one in seen):
        given = next((source.facts for source in sources if source.known), {})
        said += "\n" + _SKELETON.format(
            experiment=default(),
            title=given.get("title", NOT_SAID),
            author=given.get("author", NOT_SAID),
        )
    return said


def _named(
    tables: Sequence[_One], facts: Mapping[str, str | None]
) -> Iterator[tuple[Table, Parsed]]:
    """Each table with an id of its own, numbered if several would share one."""
    ids = [facts.get("id") or f"{one.layout.experiment}-imported" for one in tables]
    several, number = Counter(ids), Counter[str]()
    for name, one in zip(ids, tables, strict=True):
        number[name] += 1
        given = {**one.source.facts, **{key: value for key, value in facts.items() if value}}
        own = f"{name}-{number[name]}" if several[name] > 1 else name
        yield _table(one, given, own), one.parsed


def _table(one: _One, given: Mapping[str, str], name: str) -> Table:
    parsed = one.parsed
    said = {**_machine(one), **parsed.facts}
    fields: dict[str, object] = {
        "id": name,
        "experiment": one.layout.experiment,
        "title": given.get("title", NOT_SAID),
        "author": given.get("author", NOT_SAID),
        "machine": given.get("machine") or said.get("machine", NOT_SAID),
        "method": parsed.method,
        "unit": parsed.unit,
        "better": parsed.better,
        "rows": parsed.rows,
        **{
            name: said[name]
            for name in ("base", "cpus", "node_gib", "approximate", "claims")
            if name in said
        },
        **{name: given[name] for name in ("message_id", "commit") if name in given},
    }
    if "date" in given:
        fields["date"] = date.fromisoformat(given["date"])
    try:
        return Table.model_validate(fields)
    except ValidationError as cause:
        raise faults("the table", cause) from cause


def _machine(one: _One) -> Mapping[str, object]:
    """Facts on the machine in the writer's text, or in the quotation that it refers to."""
    told = about.machine(one.source.lines, one.first)
    if not told and about.says_same(one.source.lines, one.first):
        for source in one.source.quotes:
            told = told or about.machine(source.lines, one.first)
    return told
