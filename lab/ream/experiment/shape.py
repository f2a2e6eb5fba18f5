# SPDX-License-Identifier: GPL-2.0-only
"""What every experiment has: variants, rows, and how many launches; one TOML file each."""

import difflib
import fnmatch
import re
import sys
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from ream.errors import BadUsage
from ream.experiment.columns import NO_COLUMNS, Columns
from ream.experiment.counters import with_counters
from ream.folders import base_names
from ream.nearest import hint
from ream.values import Folder, Name, Scalar, Scalars, Sealed, Texts, Tuple, Value

PAGE_BYTES = 4096
STRUCT_PAGE_BYTES = 64  # sizeof(struct page), include/linux/mm_types.h; the native build checks it

MAX_LAUNCHES = 1000
MAX_ROUNDS = 1000
MOST_SHORT = 60
"""Characters of a line beside an experiment's name, on a terminal of 80 columns."""

MOST_FINER = 16
"""The most by which planned samples are multiplied, for few rows and a small effect."""
FINER_LAUNCHES = 2
"""Factor by which launches are multiplied. Rounds make up the rest, as they need no start."""

Stage = Literal["native", "vm", "live"]

LimitKind = Literal["bound", "plain loop"]
"""A bound is what the hardware allows: a fill or copy of the same bytes. A plain loop does the same
to the same entries, and is something to compare with."""

BEFORE = "before"
AGAIN = "-again"
"""What the name of a second copy of a variant ends in, which a noise floor comes of."""
BEFORE_AGAIN = BEFORE + AGAIN
PUBLISHED = "published"
OURS = "ream"
SHOWN: Mapping[str, str] = {PUBLISHED: "technique", OURS: "ours"}
"""The name that readers see for each variant's name in records. `technique` is our implementation
of what was published, and `ours` goes beyond it."""
BASE = "base"
"""The base as it is, where `published` is without what the base has gained since."""
RUNNING = "running"
"""The only variant of the live stage: the kernel that this machine runs."""
PATCHED = "patched"
"""The variant of a judgement with the whole series; a name that no given series can clash with."""
CONTROL = "control"
"""`before` linked once more and slowed by a known share: what a run has to find."""
IMPLIED = (BEFORE, BEFORE_AGAIN)
"""Variants every experiment has: what there was before, linked twice, for the noise floor."""


class PublishedRef(Value):
    """Which line of which published table a row of ours is compared with.

    params: what the line has, other things perhaps besides. before: the line of the kernel
    without the technique, where that is another one. value: what both lines call the quantity,
    where it is not `before` and `published`. nearest: of several lines with `params`, the one
    whose number of threads is nearest to that of our own run.
    """

    id: Name
    params: Scalars = Field(default={}, validate_default=True)
    before: Scalars | None = None
    value: str | None = None
    nearest: Literal["threads"] | None = None

    @model_validator(mode="after")
    def _a_value_has_two_lines(self) -> Self:
        if self.value is not None and self.before is None:
            raise ValueError("value is given, but not before, the line of the kernel without it")
        return self


BytesOf = Literal["map", "memory"]
"""What bytes are counted of: the memory map, 64 for each page, or memory itself."""

BYTES_PER_PAGE: Mapping[BytesOf, int] = {"map": STRUCT_PAGE_BYTES, "memory": PAGE_BYTES}


@dataclass(frozen=True)
class GridPlace:
    """Where a row stands in the grid of migration: a line for each number of channels."""

    channels: int
    folio: str


@dataclass(frozen=True)
class BatchOf:
    """What of a batch a row times: parts are differences between rows of several kinds."""

    kind: str
    pages: int


def _always_several(refs: object) -> object:
    return (refs,) if isinstance(refs, (Mapping, PublishedRef)) else refs


class RowBase(Value):
    """What a row has in every experiment; each experiment adds its own parameters."""

    name: Name
    stage: Stage = "native"
    rounds: int = Field(ge=1, le=MAX_ROUNDS)
    threads: int | None = Field(default=None, ge=1)
    published: Annotated[Tuple[PublishedRef], BeforeValidator(_always_several)] = ()
    """References to published tables; in the file one table, or an array of them."""
    differs: Texts = ()
    no_verdict: str | None = None
    part_of: str | None = None
    """What was timed there, whole, where the row times a part of it."""
    on_request: bool = False
    """Whether it runs only where it is named."""
    beside_live: bool = False
    """Whether `ream run --beside-live` measures it unless rows are named."""
    arch: str | None = None
    """The architecture of kernels that it is asked of; None: any."""
    config: Tuple[Name] = ()
    """Fragments of kernel/config that its kernels have over what the stage gives them."""

    configurable: ClassVar[tuple[Stage, ...]] = ("native",)
    """Stages whose rows may have such."""

    @property
    def size_of(self) -> str | None:
        """What rows have in common that differ in their number of bytes alone; None: nothing.

        It names the call and the size of folios, as `fork 64K`, in every experiment alike.
        """
        return None

    @model_validator(mode="after")
    def _its_kernels_are_its_own(self) -> Self:
        if self.config and self.stage not in self.configurable:
            raise ValueError(f"rows of the {self.stage} stage here have no kernels of their own")
        return self

    @model_validator(mode="after")
    def _a_verdict_needs_a_table(self) -> Self:
        if self.part_of is not None and not self.published:
            raise ValueError("part_of is given, but no published table that has the whole")
        if self.no_verdict is not None and not self.published:
            raise ValueError("no_verdict is given, but no published table to have a verdict on")
        return self

    @abstractmethod
    def params(self) -> dict[str, Scalar | None]:
        """The row's parameters as the record and --json have them."""

    @abstractmethod
    def title(self) -> str:
        """The row's parameters in a few words, for people."""

    @property
    @abstractmethod
    def written_bytes(self) -> int:
        """Bytes that one sample is about, of memory map in most experiments; the exact number
        comes with it.
        """

    @property
    def bytes_of(self) -> BytesOf:
        """What written_bytes are bytes of."""
        return "map"

    @property
    def nr_entries(self) -> int | None:
        """Page table entries that the time is about; None: it is about pages."""
        return None

    @property
    def nr_batches(self) -> int | None:
        """Calls of the kernel that the work is done in; None: it is one, or the kernel's affair."""
        return None

    @property
    def cpus_wanted(self) -> int | None:
        """CPUs that work at once if they are idle; None: it does not matter."""
        return None

    @property
    def waits(self) -> bool:
        """Whether a sample may sleep, such as while a device copies, so that its CPU time is no
        measure of its time.
        """
        return False

    @property
    def stands_in(self) -> str | None:
        """What stands in for the device that its tables are about, as "a CPU thread"; None:
        nothing does, or a declared model of the device.
        """
        return None

    @property
    def model_of_device(self) -> str | None:
        """The declared model of that device which stands in for it, with its numbers."""
        return None

    @property
    def times_page_tables(self) -> bool:
        """Whether it times code that reads and writes page tables entry by entry. Hosted code has
        no mitigations and no PARAVIRT, which a kernel pays for with each such call on some CPUs.
        """
        return False

    @property
    def cell(self) -> GridPlace | None:
        """The row's place in the experiment's grid; None: it has none."""
        return None

    @property
    def batch_of(self) -> BatchOf | None:
        """The part of moving a batch that it times; None: another thing."""
        return None

    @property
    def is_of_all_memory(self) -> bool:
        """Whether it is about all memory of a machine, so that another size is another row."""
        return False

    @property
    def free_fields(self) -> frozenset[str]:
        """Fields that may have another value, and the row is still that of its tables."""
        return frozenset({"rounds"})

    @property
    def fixed_rounds(self) -> bool:
        """Whether the number of rounds lies in the nature of the row."""
        return False

    @property
    def times_the_map(self) -> bool:
        """Whether the time is that of writing the map, so that bytes over time are a rate."""
        return True


R = TypeVar("R", bound=RowBase)


def _distinct(rows: tuple[R, ...]) -> tuple[R, ...]:
    # Counted here, not by min_length: that adds a false "too short" when a row is faulty.
    names = [row.name for row in rows]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"more than one row is called {', '.join(twice)}")
    if not rows:
        raise ValueError("there is no row")
    return rows


def is_copy(name: str) -> bool:
    """Whether this is a variant's second copy, which only a noise floor comes of."""
    return name.endswith(AGAIN)


_HEAD = re.compile(rf"\A({'|'.join(SHOWN)})(?=$|\+|{AGAIN}$)")
_IN_TEXT = re.compile(
    rf"(?<![\w`+/.-])(?<!the )(?<!as )(?<!is )({'|'.join(SHOWN)})"
    r"(?='s (?:time|instr)|[:;] |,? \d|, [a-z]|\+"
    r"| (?:brings|depends|is|needs|takes|was|were|writes)\b)"
)
"""A variant's name in a sentence of ream, by what follows it: `published` may be an adjective."""


def shown(variant: str) -> str:
    """The name of a variant for readers, also of a second copy and of one with more series."""
    return _HEAD.sub(lambda name: SHOWN[name[0]], variant, count=1)


def shown_in(text: str) -> str:
    """A sentence about variants with their names for readers."""
    return _IN_TEXT.sub(lambda name: SHOWN[name[0]], text)


def recorded(variant: str) -> str:
    """The name in records of a variant that a reader named, by either of its names."""
    return next((name for name, its in SHOWN.items() if its == variant), variant)


def _not_implied(name: str) -> str:
    if is_copy(name):
        raise ValueError(f"is implied: {name.removesuffix(AGAIN)} itself, linked a second time")
    return name


Variants = Sealed[Annotated[Name, AfterValidator(_not_implied)], Tuple[Folder]]


def _base(name: str) -> str:
    if name not in (known := base_names()):
        raise ValueError(f"no such base{hint(name, known)}; there is {', '.join(known)}")
    return name


def row_hint(asked: str, known: Iterable[str], elsewhere: Iterable[RowBase]) -> str:
    """What to say behind the name of a row, or a pattern, that a stage has not.

    known: names of the stage's rows. elsewhere: rows of other stages.
    """
    its_stage = {row.name: row.stage for row in elsewhere}
    at = dict.fromkeys(its_stage[name] for name in fnmatch.filter(its_stage, asked))
    near = hint(asked, known)
    if at:
        its = f"({' and '.join(f'--stage {stage}' for stage in at)} has it"
        return near.replace("(", f"{its}; ", 1) or f" {its})"
    if near:
        return near
    far = difflib.get_close_matches(asked, its_stage, n=1)
    return f" (did you mean {far[0]} of the {its_stage[far[0]]} stage?)" if far else ""


class ExperimentBase(Value, Generic[R]):
    """One question, the variants it compares and the rows it is asked of."""

    name: str
    question: str
    short: str = Field(default="", max_length=MOST_SHORT)
    """The question in a few words, for the list of experiments; empty: the question itself."""
    default: bool = False
    """Whether this experiment runs if the user names none."""
    stage: Stage = "native"
    """The stage of a run that names none."""
    launches: int = Field(ge=1, le=MAX_LAUNCHES)
    boots: int = Field(default=3, ge=1, le=MAX_LAUNCHES)
    """Launches of the vm stage: each boots every variant once for every device."""
    variants: Variants
    """The series of each variant. `before` is the base itself unless it is given here, which is
    needed if the base already has the technique."""
    variants_on: Sealed[Annotated[str, AfterValidator(_base)], Variants] = Field(
        default={}, validate_default=True
    )
    """By base, variants whose series differ there from those in `variants`."""
    base_adds: str | None = None
    """What the variant `base` has that `published` has not; a row says what it costs."""
    limited_by: str | None = None
    """What bounds it, in words; None: a fill of the same bytes."""
    limit_kind: LimitKind = "bound"
    """What the limit is: what the hardware allows, or a plain loop that other code may beat."""
    found_live: str | None = None
    """How a sample of the live stage finds the caches, in words."""
    layouts: Texts = ()
    """Plans of older records have this field. Nothing reads it."""
    selftests: Name | None = None
    """The list in kernel/selftests with the kernel's own tests of what it measures."""
    rows: Annotated[Tuple[R], AfterValidator(_distinct)]

    columns: ClassVar[Columns] = NO_COLUMNS
    """What its samples have beside time, and the samples of no other experiment."""

    @property
    def all_columns(self) -> Columns:
        """What its samples have beside time: its own columns and the machine's counters."""
        return with_counters(self.columns)

    @property
    def folder(self) -> Path:
        """Where its code is."""
        return Path(str(sys.modules[type(self).__module__].__file__)).parent

    def variant_names(self) -> tuple[str, ...]:
        """before, its second copy, then the file's own, in the file's order."""
        return (*IMPLIED, *(name for name in self.variants if name != BEFORE))

    def row(self, name: str) -> R | None:
        return next((row for row in self.rows if row.name == name), None)

    def has(self, stage: Stage) -> bool:
        """Whether any of its rows is of that stage."""
        return any(row.stage == stage for row in self.rows)

    def at(self, stage: Stage, arch: str = "x86_64") -> Self:
        """The same experiment with the rows, and the number of launches, of one stage.

        arch: of the kernels. Raises BadUsage if it has no row there.
        """
        rows = tuple(row for row in self.rows if row.stage == stage and row.arch in (None, arch))
        if not rows:
            others = " and ".join(dict.fromkeys(row.stage for row in self.rows))
            raise BadUsage(f"{self.name} has no row for the {stage} stage, but for {others}")
        launches = self.boots if stage == "vm" else self.launches
        return self.model_copy(update={"rows": rows, "launches": launches})

    def only(self, names: Sequence[str], rows: Sequence[RowBase] = ()) -> Self:
        """The same experiment with these rows, each a name or a pattern such as why-*.

        rows: those of all stages. Raises BadUsage naming every one that is unknown, with the stage
        that has it, or with a name that is near.
        """
        known = [row.name for row in self.rows]
        if unknown := [name for name in names if not fnmatch.filter(known, name)]:
            others = [row for row in rows if row.stage != self.rows[0].stage]
            hints = [row_hint(name, known, others) for name in unknown]
            named = ", ".join(name + near for name, near in zip(unknown, hints, strict=True))
            # Some experiments have dozens: a list of all would hide the hint.
            there = "" if all(hints) else f"; it has {', '.join(known)}"
            raise BadUsage(f"{self.name} has no row {named}{there}")
        wanted = {row for name in names for row in fnmatch.filter(known, name)}
        return self.model_copy(update={"rows": tuple(r for r in self.rows if r.name in wanted)})

    def chosen(self, names: Sequence[str], rows: Sequence[RowBase], *, beside_live: bool) -> Self:
        """The same experiment with the rows that are named, or those that run if none is.

        rows: as only() has them. beside_live: whether these are those of --beside-live. Raises
        BadUsage as only() does, and if there are none.
        """
        if names:
            return self.only(names, rows)
        return self.beside_live() if beside_live else self.unasked()

    def beside_live(self) -> Self:
        """The same experiment with the rows that --beside-live measures unless others are named.

        Raises BadUsage if there is none.
        """
        rows = tuple(row for row in self.rows if row.beside_live)
        if not rows:
            raise BadUsage(f"--beside-live: {self.name} has no rows for it; name some with --row")
        return self.model_copy(update={"rows": rows})

    def unasked(self) -> Self:
        """The same experiment without the rows that run only on request.

        Raises BadUsage if there is no other.
        """
        rows = tuple(row for row in self.rows if not row.on_request)
        if not rows:
            raise BadUsage(f"every row of {self.name} there runs only if it is named")
        return self.model_copy(update={"rows": rows})

    def resized(self, *, launches: int | None = None, rounds: int | None = None) -> Self:
        """The same experiment with other numbers of launches and rounds; None keeps its own.

        Raises BadUsage if a number is out of range.
        """
        for what, value, most in (
            ("launches", launches, MAX_LAUNCHES),
            ("rounds", rounds, MAX_ROUNDS),
        ):
            if value is not None and not 1 <= value <= most:
                raise BadUsage(f"{what}: must be between 1 and {most} (it is {value})")
        return self.model_copy(
            update={
                "launches": self.launches if launches is None else launches,
                "rows": tuple(
                    row
                    if rounds is None or row.fixed_rounds
                    else row.model_copy(update={"rounds": rounds})
                    for row in self.rows
                ),
            }
        )

    def finer(self, whole: "ExperimentBase[Any]") -> Self:
        """Return the rows with more samples, within the time that all rows of `whole` would take.

        There are at most MOST_FINER times as many samples as planned. A given series is judged by
        small effects, and with few rows there is time to find them.
        """
        times = min(MOST_FINER, int(whole._nr_bytes() / max(1, self._nr_bytes())))
        if times < FINER_LAUNCHES:
            return self
        launches = min(MAX_LAUNCHES, self.launches * FINER_LAUNCHES)
        per_launch = times // FINER_LAUNCHES
        rows = (
            row
            if row.fixed_rounds
            else row.model_copy(update={"rounds": min(MAX_ROUNDS, row.rounds * per_launch)})
            for row in self.rows
        )
        return self.model_copy(update={"launches": launches, "rows": tuple(rows)})

    def _nr_bytes(self) -> int:
        return sum(row.rounds * row.written_bytes for row in self.rows)

    def single(self, row: R) -> Self:
        """The same question asked of one row that is not in the file."""
        return self.model_copy(update={"rows": (row,)})
