# SPDX-License-Identifier: GPL-2.0-only
"""Finds notes that apply to several rows, so that a table prints each of them once."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from ream.report.contract import RowResult

LEAST = 3
"""The smallest number of rows for which a note stands apart from them."""
ROW = "ROW"

_NUMBER = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?![\w.]\w)")
_SIZE = re.compile(r"\d\w*")
_COMMAND = re.compile(r"`[^`]*`")


@dataclass(frozen=True)
class Shared:
    """Texts with one label that differ among rows in one number at most."""

    label: str
    rows: tuple[str, ...]
    texts: tuple[str, ...]

    def words(self, nr_rows: int) -> str:
        """One text for all of them, with the range of the number, and the rows."""
        whose = "all rows" if len(self.rows) == nr_rows else ", ".join(_names(self.rows))
        return f"{together(self.texts)} (in {whose})"


def texts_of(row: RowResult) -> Mapping[str, Sequence[str]]:
    """The texts below the numbers of a row, by label."""
    differs = row.comparisons[0].differs if len(row.comparisons) == 1 else ()
    return {"differs": differs, "note": row.notes, "also": row.remarks}


def shared(rows: Iterable[RowResult]) -> tuple[Shared, ...]:
    """The notes of LEAST rows or more, in the order of their first rows."""
    by_form: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row in rows:
        for label, texts in texts_of(row).items():
            for text in dict.fromkeys(texts):
                own = text.replace(row.row, ROW)
                by_form.setdefault((label, _NUMBER.sub("#", own)), []).append((row.row, own))
    return tuple(
        Shared(label, tuple(name for name, _ in its), tuple(text for _, text in its))
        for (label, _), its in by_form.items()
        if len(its) >= LEAST and alike([text for _, text in its])
    )


def left(row: RowResult, label: str, found: Iterable[Shared]) -> list[str]:
    """The texts of a row that it does not share."""
    its = (one for one in found if one.label == label and row.row in one.rows)
    gone = {text for one in its for text in one.texts}
    return [text for text in texts_of(row)[label] if text.replace(row.row, ROW) not in gone]


def _numbers(texts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The numbers of all texts, place by place."""
    return zip(*(_NUMBER.findall(text) for text in texts), strict=True)


def _ranges(texts: Sequence[str]) -> set[tuple[str, ...]]:
    """The different numbers in a place; several places may have the same ones."""
    return {its for its in _numbers(texts) if len(set(its)) > 1}


def alike(texts: Sequence[str]) -> bool:
    """Whether texts are the same but for one number, so that one can stand for all of them."""
    return len({_NUMBER.sub("#", text) for text in texts}) == 1 and len(_ranges(texts)) <= 1


def together(texts: Sequence[str]) -> str:
    """One text for several that differ in numbers alone, with the range of each number."""
    said = iter([_range(its) for its in _numbers(texts)])
    text = _NUMBER.sub(lambda _: next(said), texts[0])
    return _COMMAND.sub(lambda its: re.sub(r"\S+ to \S+(?=`| )", "N", its[0]), text)


def _range(its: Sequence[str]) -> str:
    ends = min(its, key=float), max(its, key=float)
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _names(rows: Sequence[str]) -> Iterator[str]:
    """The names, with neighbours that differ in one number together, as fork-{4k, 64k}-cold."""
    for form, its in groupby(rows, key=lambda name: _SIZE.sub("{}", name, count=1)):
        names = [*its]
        if len(names) == 1:
            yield names[0]
        else:
            sizes = [found[0] for name in names if (found := _SIZE.search(name))]
            yield form.replace("{}", f"{{{', '.join(sizes)}}}")
