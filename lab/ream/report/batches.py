# SPDX-License-Identifier: GPL-2.0-only
"""Where the time of a batch goes, from rows that differ in one thing each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ream.experiment import BEFORE, Row, is_copy
from ream.report.contract import Batch, RowResult
from ream.report.numbers import digits, rounded

_Place = tuple[str, int]
"""A variant, and the pages of a batch."""


def batches(rows: Iterable[Row], results: Iterable[RowResult]) -> tuple[Batch, ...]:
    """Where the time of a page goes, by variant and pages of a batch.

    Rows that differ in one thing are set off against each other; what would need a row that did
    not run is None. rows and results: in lockstep.
    """
    found: dict[tuple[str, str, str], dict[_Place, tuple[float, float | None]]] = {}
    for row, result in zip(rows, results, strict=True):
        if (of := row.batch_of) is None:
            continue
        by_place = found.setdefault((of.mode, of.measure, of.tlb_flush), {})
        for name, its in result.variants.items():
            if not is_copy(name) and its.ns_per_page is not None:
                by_place[name, of.pages] = its.ns_per_page, its.per_batch
    return tuple(_batches(found))


def _batches(
    found: Mapping[tuple[str, str, str], Mapping[_Place, tuple[float, float | None]]],
) -> Iterator[Batch]:
    move = found.get(("baseline", "move", "none"), {})
    metadata = found.get(("baseline", "metadata", "none"), {})
    flushed = found.get(("baseline", "move", "measured"), {})
    dma = found.get(("dma", "move", "none"), {})
    for place in _in_order([*move, *metadata, *flushed, *dma]):
        all_of_it, _ = move.get(place, (None, None))
        rest, _ = metadata.get(place, (None, None))
        with_flush, _ = flushed.get(place, (None, None))
        # `before` has no engine: its row is the plain one again.
        by_dma, _ = dma.get(place, (None, None)) if place[0] != BEFORE else (None, None)
        whole = flushed.get(place) or move.get(place)
        yield Batch(
            subject=place[0],
            batch_pages=place[1],
            page_ns=digits(with_flush if with_flush is not None else all_of_it),
            copy_ns=_difference(all_of_it, rest),
            flush_ns=_difference(with_flush, all_of_it),
            rest_ns=digits(rest),
            dma_page_ns=digits(by_dma),
            call_ns=None if whole is None or whole[1] is None else whole[1],
        )


def _in_order(places: Sequence[_Place]) -> list[_Place]:
    """By variant in the order they come, then by size."""
    names = list(dict.fromkeys(name for name, _ in places))
    return sorted(set(places), key=lambda place: (names.index(place[0]), place[1]))


def _difference(more: float | None, less: float | None) -> float | None:
    """Of two measured times; noise may make it negative."""
    return None if more is None or less is None else rounded(more - less)
