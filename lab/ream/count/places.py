# SPDX-License-Identifier: GPL-2.0-only
"""Addresses of each variant's functions in a linked program."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from ream.kernel.variant import HOME
from ream.stage.computer import Computer, kernel_texts
from ream.stage.fault import Piece, functions, pieces
from ream.stage.link import Program, map_of


@dataclass(frozen=True)
class Place:
    """A function of one variant's kernel."""

    variant: str
    name: str
    """The function's name in the source, see `source_name()`."""
    start: int
    end: int
    is_stand_in: bool
    """Whether it is a stand-in of ream's for a function of the kernel."""


@dataclass(frozen=True)
class _Text:
    """A piece of a program that comes from one object of a variant."""

    variant: str
    start: int
    end: int
    is_stand_in: bool


def source_name(symbol: str) -> str:
    """Return a function's name in the source: without .cold, .part.0 or .constprop.0.

    A compiler adds these when it splits or clones a function, which differs between variants.
    """
    return symbol.partition(".")[0]


def places_of(program: Program) -> tuple[Place, ...]:
    """Return all variants' functions in a program by ascending address; one of aliases."""
    return _places(_texts(program), program.path)


def places_on(computer: Computer, variant: str) -> tuple[Place, ...]:
    """Return the functions of a computer's kernel by ascending address; one of aliases."""
    texts = (
        _Text(variant, start, end, path.parent.name == HOME)
        for start, end, path, _ in kernel_texts(computer.program)
    )
    return _places(texts, computer.program)


def _places(texts: Iterable[_Text], program: Path) -> tuple[Place, ...]:
    """Return functions as places, each cut where the next one begins."""
    ordered = sorted(texts, key=lambda one: one.start)
    starts = [one.start for one in ordered]
    found: dict[int, Place] = {}
    for function in sorted(functions(program), key=lambda one: (one.start, one.name)):
        at = bisect_right(starts, function.start) - 1
        if at < 0 or function.start >= ordered[at].end or not function.bytes:
            continue
        text, end = ordered[at], function.start + function.bytes
        ours = text.is_stand_in
        place = Place(text.variant, source_name(function.name), function.start, end, ours)
        known = found.get(function.start)
        if known is None or known.end < end:
            found[function.start] = place
    return tuple(_apart(sorted(found.values(), key=lambda one: one.start)))


def _apart(found: list[Place]) -> Iterator[Place]:
    for place, following in zip_longest(found, found[1:]):
        end = place.end if following is None else min(place.end, following.start)
        yield Place(place.variant, place.name, place.start, end, place.is_stand_in)


def _texts(program: Program) -> Iterator[_Text]:
    copies = {program.path.parent / f"{name}.o": name for name in program.order}
    paths = {
        linked: path
        for kernel in program.kernels
        for linked, path in zip(kernel.linked, kernel.objects, strict=True)
    }
    inner = {copy: tuple(_pieces(copy)) for copy in copies}
    for outer in _pieces(program.path):
        for piece in inner.get(outer.file, ()):
            if piece.into == outer.section and piece.bytes:
                start = outer.start + piece.start
                path = paths.get(piece.file, piece.file)
                ours = path.parent.name == HOME
                yield _Text(copies[outer.file], start, start + piece.bytes, ours)


def _pieces(linked: Path) -> Iterator[Piece]:
    return pieces(map_of(linked).read_text(errors="replace"))
