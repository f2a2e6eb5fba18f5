# SPDX-License-Identifier: GPL-2.0-only
"""Layouts whose columns are separated by bars: by folio size, and by channels and folio size."""

import re
from collections.abc import Sequence

from ream.errors import BadUsage
from ream.mail.layout import Parsed, distinct, places
from ream.mail.text import NUMBER, MailLine, cells, number
from ream.published import TableRow

_SIZE = re.compile(rf"({NUMBER}) ?(K|KB|KiB|M|MB|MiB)", re.IGNORECASE)
_FOLIO = re.compile(r"([0-9]{1,4}) ?([KMG])(?:i?B)?", re.IGNORECASE)
_VALUE = re.compile(rf"({NUMBER}) ?± ?({NUMBER})")
_CHANGE = re.compile(rf"([-+]?) ?({NUMBER}) ?%")
_VERSION = re.compile(r"v[0-9]+\.[0-9]+\S*")

FOLIO_KIB = "Folio Size | v6.8-rc1 | New | Change"
CHANNELS = "Channel Cnt | 4K | 16K ..., cells as 2.63±0.26"
_BASELINE = re.compile(r"Baseline \(.*?\b(v[0-9]+\.[0-9][\w.-]*)")
_LEAST_CELLS = 3


_FEW = 8
"""How many lines above the head are searched for the name of the timed call."""


def folio_starts(lines: Sequence[MailLine]) -> Sequence[int]:
    """The places of heads of tables by folio size."""
    return places(lines, lambda line: _is_folio_head(cells(line)))


def read_by_folio(lines: Sequence[MailLine], start: int, end: int) -> Parsed | None:
    """A line for each folio size: before, after, and the change in per cent."""
    rows, understood = [], {lines[start].number}
    for line in lines[start + 1 : end]:
        if (row := _folio_row(cells(line))) is not None:
            rows.append(row)
            understood.add(line.number)
    base = cells(lines[start])[1]
    above = _paragraph_above(lines[max(0, start - _FEW) : start])
    method = "before and after, by the size of the folios"
    notes = {"unit": "not in the table: this layout's benchmark prints seconds"}
    if "munmap" in above and "fork" not in above:
        method = f"munmap(), {method}"
    else:
        notes["method"] = "of fork(), unless id, title or method says unmap"
    return Parsed(
        unit="s",
        better="lower",
        method=method,
        rows=distinct(rows),
        facts={"base": base} if _VERSION.fullmatch(base) else {},
        notes=notes,
        lines=frozenset(understood),
    )


def _paragraph_above(lines: Sequence[MailLine]) -> str:
    blocks = "\n".join(line.text for line in lines).strip().split("\n\n")
    return blocks[-1]


def _is_folio_head(parts: Sequence[str]) -> bool:
    return len(parts) >= _LEAST_CELLS and parts[0].lower() == "folio size"


def _folio_row(parts: Sequence[str]) -> TableRow | None:
    if not _LEAST_CELLS <= len(parts) <= _LEAST_CELLS + 1:
        return None
    size, *values = parts
    if (found := _SIZE.fullmatch(size)) is None:
        return None
    kib = number(found[1]) * (1024 if found[2].lower().startswith("m") else 1)
    if kib != int(kib) or not all(re.fullmatch(NUMBER, value) for value in values[:2]):
        return None
    told: dict[str, int | float] = {
        "before": number(values[0]),
        "published": number(values[1]),
    }
    if len(values) > 2:  # noqa: PLR2004
        if (change := _CHANGE.fullmatch(values[2])) is None:
            return None
        told["change_pct"] = number(change[2]) * (-1 if change[1] == "-" else 1)
    return TableRow(params={"folio_kib": int(kib)}, values=told)


def channels_starts(lines: Sequence[MailLine]) -> Sequence[int]:
    """Where tables by channels begin. A table has two grids; the second has channels."""
    starts: list[int] = []
    has_channels = False
    for place, line in enumerate(lines):
        parts = [part for part in cells(line) if part]
        if _sizes(parts) is None:
            continue
        channels = parts[0].lower().startswith("channel")
        if not starts or has_channels or not channels:
            starts.append(place)
        has_channels = channels
    return [
        _with_base(lines, place, least) for place, least in zip(starts, [-1, *starts], strict=False)
    ]


def _with_base(lines: Sequence[MailLine], head: int, above: int) -> int:
    """The line that names the kernel before, a few lines above the head; or the head."""
    near = range(head - 1, max(above, head - _FEW - 1), -1)
    return next((place for place in near if _BASELINE.search(lines[place].text)), head)


def read_by_channels(lines: Sequence[MailLine], start: int, end: int) -> Parsed | None:
    """Two grids with the same folio sizes: the kernel before, and a line per channels."""
    sizes: tuple[str, ...] = ()
    facts: dict[str, str] = {}
    rows, understood = [], set[int]()
    for line in lines[start:end]:
        parts = [part for part in cells(line) if part]
        if (found := _sizes(parts)) is not None:
            if sizes and found != sizes:
                raise BadUsage(f"line {line.number}: other sizes of folios than above: {line.text}")
            sizes = found
        elif sizes and (own := _channels_row(parts, sizes)) is not None:
            rows += own
        elif (base := _BASELINE.search(line.text)) is not None:
            facts.setdefault("base", base[1])
        else:
            continue
        understood.add(line.number)
    named = {name for row in rows for name in row.values}
    lacks = None
    if rows and "before" not in named:
        lacks = "there is no line of the kernel before: one without a number of channels"
    elif rows and "published" not in named:
        lacks = "there is no line of the patched kernel: one with a number of channels"
    return Parsed(
        unit="GB/s",
        better="higher",
        method="throughput by channels and folio size; channels = 0 is the kernel before",
        rows=distinct(rows),
        facts=facts,
        notes={"unit": "not in the table: this layout has rates"},
        lines=frozenset(understood),
        lacks=lacks,
    )


def _sizes(parts: Sequence[str]) -> tuple[str, ...] | None:
    names = parts[1:] if parts and parts[0].lower().startswith("channel") else parts
    found = [_FOLIO.fullmatch(name) for name in names]
    if len(found) < _LEAST_CELLS:
        return None
    named = [f"{match[1]}{match[2].upper()}" for match in found if match is not None]
    return tuple(named) if len(named) == len(names) and len({*named}) == len(named) else None


def _channels_row(parts: Sequence[str], sizes: Sequence[str]) -> list[TableRow] | None:
    channels, name, values = 0, "before", parts
    if parts and re.fullmatch(r"[0-9]{1,4}", parts[0]):
        channels, name, values = int(parts[0]), "published", parts[1:]
    found = [_VALUE.fullmatch(value) for value in values]
    cells_of = [match for match in found if match is not None]
    if len(cells_of) != len(sizes) or len(found) != len(sizes):
        return None
    if name == "published" and channels == 0:
        name = "before"
    return [
        TableRow(
            params={"channels": channels, "folio": size},
            values={name: number(match[1])},
            sd={name: number(match[2])},
        )
        for size, match in zip(sizes, cells_of, strict=True)
    ]
