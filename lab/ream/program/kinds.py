# SPDX-License-Identifier: GPL-2.0-only
"""The kinds of words that follow a step's name: how each is read, printed and made smaller."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

PAGE_BYTES = 4096
MOST_PAGES = 1 << 24
"""The largest area or file: 64 GiB."""
MOST_PROCESSES = 16
MOST_NODES = 4
MOST_CPUS = 64
MOST_SHOWN = 40

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,31}", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)
_BYTES = re.compile(r"([0-9]{1,12})([KMG])", re.ASCII)
_TIME = re.compile(r"([0-9]{1,9})(ms|s)", re.ASCII)
_PLACE = re.compile(r"([^+]*)(?:\+([0-9]{1,9}))?", re.ASCII)
_RANGE = re.compile(r"([^\[\]]*)(?:\[([0-9]{1,9})(?::([0-9]{1,9}))?\])?", re.ASCII)
_PROCESS = re.compile(r"p([0-9]{1,2})", re.ASCII)
_RESERVED = ("anon",)
_UNIT_BYTES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class WrongWord(ValueError):
    """A word is not what its place in the step asks for; the text says what is."""


def quoted(word: str) -> str:
    """The word as a message shows it: in ASCII, and not longer than a line."""
    shown = ascii(word)[1:-1]
    return f'"{shown[:MOST_SHOWN]}..."' if len(shown) > MOST_SHOWN else f'"{shown}"'


@dataclass(frozen=True)
class Range:
    """Pages of an area or a file, from `begin` up to but not including `end`; None: all."""

    name: str
    begin: int | None = None
    end: int | None = None

    def __str__(self) -> str:
        """The range as people write it."""
        if self.begin is None or self.end is None:
            return self.name
        single = self.end == self.begin + 1
        return f"{self.name}[{self.begin}]" if single else f"{self.name}[{self.begin}:{self.end}]"


@dataclass(frozen=True)
class Place:
    """A page of an area or of a file."""

    name: str
    offset: int = 0

    def __str__(self) -> str:
        """The place as people write it."""
        return f"{self.name}+{self.offset}" if self.offset else self.name


Value = int | str | Range | Place | tuple[int, ...] | tuple[str, ...]


class Kind(Protocol):
    """What a word may be."""

    @property
    def what(self) -> str:
        """The kind's name in a usage line."""

    def parse(self, word: str) -> Value:
        """Read the word. Raises WrongWord."""

    def show(self, value: Value) -> str:
        """Print what was read."""

    def smaller(self, value: Value) -> Iterator[Value]:
        """Values that make a smaller program, the smallest first."""


class _Plain:
    """What most kinds have in common."""

    def show(self, value: Value) -> str:
        return str(value)

    def smaller(self, value: Value) -> Iterator[Value]:
        del value
        yield from ()


@dataclass(frozen=True)
class Number(_Plain):
    """A count, within bounds."""

    what: str
    least: int = 1
    most: int = MOST_PAGES

    def parse(self, word: str) -> int:
        if _NUMBER.fullmatch(word) is None or not self.least <= int(word) <= self.most:
            raise WrongWord(f"{quoted(word)} is not a number from {self.least} to {self.most}")
        return int(word)

    def smaller(self, value: Value) -> Iterator[Value]:
        assert isinstance(value, int)
        yield from halves(value, self.least)


def halves(value: int, least: int) -> Iterator[int]:
    """Values to try instead, each once and smaller, the smallest first.

    They are the least, 2, the largest power of two, half of the value, 7/8 of it, and one less.
    """
    power = 1 << max(0, value - 1).bit_length() >> 1
    those = {least, 2, power, value // 2, value - value // 8, value - 1}
    yield from sorted(one for one in those if least <= one < value)


@dataclass(frozen=True)
class Bytes(_Plain):
    """A size with its unit; whole pages."""

    what: str = "SIZE"
    most: int = MOST_PAGES * PAGE_BYTES

    def parse(self, word: str) -> int:
        if (match := _BYTES.fullmatch(word)) is None:
            raise WrongWord(f"{quoted(word)} is not a size; write for example 512M, 64K or 1G")
        nr_bytes = int(match[1]) * _UNIT_BYTES[match[2]]
        if nr_bytes % PAGE_BYTES or not 0 < nr_bytes <= self.most:
            raise WrongWord(
                f"{quoted(word)} is not a size from 4K to {self.show(self.most)} in whole pages "
                "of 4K"
            )
        return nr_bytes

    def show(self, value: Value) -> str:
        assert isinstance(value, int)
        unit = next(unit for unit in "GMK" if value % _UNIT_BYTES[unit] == 0)
        return f"{value // _UNIT_BYTES[unit]}{unit}"

    def smaller(self, value: Value) -> Iterator[Value]:
        assert isinstance(value, int)
        yield from (nr * PAGE_BYTES for nr in halves(value // PAGE_BYTES, 1))


@dataclass(frozen=True)
class Swap(Bytes):
    """The size of a new swap file, or whether the one that exists is in use."""

    what: str = "SIZE|on|off"

    def parse(self, word: str) -> int | str:  # type: ignore[override]  # a size, or a word
        return word if word in {"on", "off"} else super().parse(word)

    def show(self, value: Value) -> str:
        return value if isinstance(value, str) else super().show(value)

    def smaller(self, value: Value) -> Iterator[Value]:
        if not isinstance(value, str):
            yield from super().smaller(value)


@dataclass(frozen=True)
class Time(_Plain):
    """A time, in milliseconds."""

    what: str = "TIME"

    def parse(self, word: str) -> int:
        if (match := _TIME.fullmatch(word)) is None or not int(match[1]):
            raise WrongWord(f"{quoted(word)} is not a time; write for example 11s or 250ms")
        return int(match[1]) * (1000 if match[2] == "s" else 1)

    def show(self, value: Value) -> str:
        assert isinstance(value, int)
        return f"{value}ms" if value % 1000 else f"{value // 1000}s"

    def smaller(self, value: Value) -> Iterator[Value]:
        assert isinstance(value, int)
        yield from halves(value, 1)


@dataclass(frozen=True)
class Word(_Plain):
    """One word of a list, each of which stands for a number."""

    what: str
    numbers: Mapping[str, int]

    def parse(self, word: str) -> str:
        if word not in self.numbers:
            raise WrongWord(f"{quoted(word)} is not one of {', '.join(self.numbers)}")
        return word


class _Listed:
    """Shows several values with commas between them, and makes them fewer."""

    def show(self, value: Value) -> str:
        assert isinstance(value, tuple)
        return ",".join(map(str, value))

    def smaller(self, value: Value) -> Iterator[Value]:
        assert isinstance(value, tuple)
        if len(value) > 1:
            yield from ((one,) for one in value)  # type: ignore[misc]  # all are of one type


@dataclass(frozen=True)
class Words(_Listed):
    """Several words of a list, with commas between them; their numbers are added."""

    what: str
    numbers: Mapping[str, int]

    def parse(self, word: str) -> tuple[str, ...]:
        words = word.split(",")
        for one in words:
            Word(self.what, self.numbers).parse(one)
        return tuple(one for one in self.numbers if one in words)


@dataclass(frozen=True)
class Nodes(_Listed):
    """Numbers of NUMA nodes, with commas between them."""

    what: str = "NODE,..."

    def parse(self, word: str) -> tuple[int, ...]:
        kind = Number("a node", 0, MOST_NODES - 1)
        return tuple(sorted({kind.parse(one) for one in word.split(",")}))


@dataclass(frozen=True)
class Name(_Plain):
    """A name: of a new area, or of a file or a group that exists."""

    what: str

    def parse(self, word: str) -> str:
        if _NAME.fullmatch(word) is None:
            raise WrongWord(
                f"{quoted(word)} is not a name; write small letters, digits and _, at most 32"
            )
        if word in _RESERVED or _PROCESS.fullmatch(word):
            raise WrongWord(f"{quoted(word)} has a meaning of its own; choose another name")
        return word


@dataclass(frozen=True)
class Text(_Plain):
    """A word that the kernel reads."""

    what: str
    pattern: str
    example: str

    def parse(self, word: str) -> str:
        if re.fullmatch(self.pattern, word, re.ASCII) is None:
            raise WrongWord(f"{quoted(word)} is no {self.what}; write for example {self.example}")
        return word


@dataclass(frozen=True)
class Process(_Plain):
    """A process: p0 to p15."""

    what: str = "pN"

    def parse(self, word: str) -> int:
        match = _PROCESS.fullmatch(word)
        if match is None or int(match[1]) >= MOST_PROCESSES or word != f"p{int(match[1])}":
            raise WrongWord(f"{quoted(word)} is not a process; write p0 to p{MOST_PROCESSES - 1}")
        return int(match[1])

    def show(self, value: Value) -> str:
        return f"p{value}"


@dataclass(frozen=True)
class Pages:
    """A range of pages, of an area or of a file."""

    what: str

    def parse(self, word: str) -> Range:
        match = _RANGE.fullmatch(word)
        if match is None:
            raise WrongWord(
                f"{quoted(word)} is not a range of pages; write for example a, a[16] or a[16:32]"
            )
        name = Name(self.what).parse(match[1])
        if match[2] is None:
            return Range(name)
        begin = int(match[2])
        end = begin + 1 if match[3] is None else int(match[3])
        if not begin < end <= MOST_PAGES:
            raise WrongWord(
                f"{quoted(word)} has no pages; the end must be behind the begin, and at most "
                f"{MOST_PAGES}"
            )
        return Range(name, begin, end)

    def show(self, value: Value) -> str:
        return str(value)

    def smaller(self, value: Value) -> Iterator[Value]:
        assert isinstance(value, Range)
        if value.begin is None or value.end is None:
            yield Range(value.name, 0, 1)
            return
        nr = value.end - value.begin
        for half in halves(nr, 1):
            yield Range(value.name, value.begin, value.begin + half)
            yield Range(value.name, value.end - half, value.end)
        if value.begin:
            yield Range(value.name, 0, nr)


@dataclass(frozen=True)
class PlaceOf:
    """A page of an area or a file, or a word that stands for none."""

    what: str
    none: str | None = None

    def parse(self, word: str) -> Place | str:
        if word == self.none:
            return word
        match = _PLACE.fullmatch(word)
        if match is None or int(match[2] or 0) >= MOST_PAGES:
            raise WrongWord(f"{quoted(word)} is not a place; write for example b or b+16")
        return Place(Name(self.what).parse(match[1]), int(match[2] or 0))

    def show(self, value: Value) -> str:
        return str(value)

    def smaller(self, value: Value) -> Iterator[Value]:
        if isinstance(value, Place):
            yield from (Place(value.name, offset) for offset in halves(value.offset, 0))
