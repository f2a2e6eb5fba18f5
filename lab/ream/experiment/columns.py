# SPDX-License-Identifier: GPL-2.0-only
"""What an experiment declares of the numbers beside time: columns, and tables that show them.

A stage puts whole numbers into `Sample.beside`. A column says what is made of them and how several
samples are summarised. A table names columns by their head, so that text and page show the same.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from ream.counted import counted
from ream.measure.sample import Sample

OF_ROW = "of the row"
"""The unit of a column that is in the unit of its row: ns, or instructions."""

Better = Literal["lower", "higher"]
Summarised = Literal["whole", "real", "ratio"]
"""The median of all samples, as a whole number or as a real one; or its ratio to the variant that
is compared with, paired by round as times are."""

Numbers = Mapping[str, float]
"""What is known of one line of a table, by name; what is not known is missing."""


@dataclass(frozen=True)
class Column:
    """One quantity that samples of an experiment have beside their time."""

    name: str
    """The name in records. `a.b` is `b` in the object `a`."""
    means: str
    of: Callable[[Sample, bool], float | None]
    """The value in one sample; the second argument: whether the row counts instructions."""
    unit: str = ""
    """Empty: a number of what it counts."""
    summarised: Summarised = "whole"
    better: Better | None = None
    published: bool = False
    """Whether published tables have a quantity of that name, so that verdicts may be about it."""


@dataclass(frozen=True)
class Amount:
    """How much of its work a sample did; where it is less than was asked, times are scaled."""

    asked: str
    """The number in `Sample.beside` that says how much was to be done."""
    done: str
    what: str
    """The thing that is counted, as "huge page"."""

    def _of(self, sample: Sample) -> tuple[int, int] | None:
        asked, done = (sample.beside.get(name) for name in (self.asked, self.done))
        return None if not asked or not done else (asked, done)

    def share(self, sample: Sample) -> float:
        """The part that was done; 1 where nothing is known."""
        asked, done = self._of(sample) or (1, 1)
        return done / asked

    def scaled(self, sample: Sample) -> Sample:
        """The sample as if all had been done: else the time of all would be that of less work."""
        asked, done = self._of(sample) or (1, 1)
        if done >= asked:
            return sample
        factor = asked / done
        cpu_ns = None if sample.cpu_ns is None else round(sample.cpu_ns * factor)
        return replace(sample, time_ns=round(sample.time_ns * factor), cpu_ns=cpu_ns)

    def words(self, sample: Sample) -> str:
        asked, done = self._of(sample) or (1, 1)
        return f"{sample.subject} got {done:,} of {counted(asked, self.what)}, and then none"


def _not_there(_: Numbers) -> None:
    return None


@dataclass(frozen=True)
class ShownColumn:
    """A column of a table that is shown."""

    head: str
    width: int
    """Characters in text; 0: on the page only."""
    here: Callable[[Numbers], float | None] = _not_there
    """The value in our line, from the columns of a variant, its `median` and its `nr_bytes`."""
    there: Callable[[Numbers], float | None] = _not_there
    """The value in a published line, from the printed values and the table's `nr_huge`."""
    digits: int | None = None
    """Decimals; None: it is a time, shown with a unit that suits it."""
    ratio: str | None = None
    """Instead of a value: the column that is a ratio, shown with its interval."""


class PrintedSource(Protocol):
    """What a heading has of a published table."""

    @property
    def id(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def machine(self) -> str: ...
    @property
    def nr_huge(self) -> int | None: ...


@dataclass(frozen=True)
class Shown:
    """A table of our rows and of published ones."""

    read: str
    """What it shows, in a sentence."""
    cells: tuple[ShownColumn, ...]
    sparse: bool = False
    """Whether only those lines are shown that have something, and nothing without any."""
    on_page: bool = True
    published: Callable[[PrintedSource], str | None] = lambda _: None
    """The heading above the lines of a published table; None: they are not shown."""


@dataclass(frozen=True)
class Part:
    """What a page takes in rows of one kind, or how much more than in those of another kind."""

    name: str
    """The name in records."""
    head: str
    width: int
    of: tuple[str, ...]
    """Kinds of rows (`BatchOf.kind`); the first that was measured counts."""
    less: str | None = None
    """The kind that is taken off."""
    without: tuple[str, ...] = ()
    """Variants that have no such part."""
    per_call: bool = False
    """Whether it is of a call rather than of a page."""
    scale: float = 1.0
    """What it is divided by where it is shown."""


@dataclass(frozen=True)
class Columns:
    """All that an experiment declares; empty for one that has nothing but times."""

    columns: tuple[Column, ...] = ()
    tables: tuple[Shown, ...] = ()
    amount: Amount | None = None
    parts: tuple[Part, ...] = ()
    """Where the time of a batch goes."""
    read_parts: str = ""
    """The same in a sentence, above their table."""

    def alike(self, samples: Iterable[Sample]) -> tuple[Sample, ...]:
        """Samples as if each had done as much as was asked for."""
        return tuple(samples) if self.amount is None else tuple(map(self.amount.scaled, samples))

    def lacking(self, samples: Iterable[Sample], subjects: Iterable[str]) -> str | None:
        """Which of these variants did least, if less than was asked for; None: all did all."""
        amount, names = self.amount, frozenset(subjects)
        if amount is None:
            return None
        own = (one for one in samples if one.role == "variant" and one.subject in names)
        least = min(own, key=amount.share, default=None)
        return None if least is None or amount.share(least) >= 1 else amount.words(least)

    def published(self, name: str) -> Column | None:
        """The column that published tables have under this name."""
        return next((one for one in self.columns if one.published and one.name == name), None)


NO_COLUMNS = Columns()
