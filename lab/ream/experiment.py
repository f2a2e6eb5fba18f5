# SPDX-License-Identifier: GPL-2.0-only
"""What is measured: an experiment is a question, its variants and its rows, one TOML file each."""

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    model_validator,
)

from ream.errors import BadUsage
from ream.values import Name, Scalar, Scalars, Sealed, Texts, Tuple, Value, faults, read_toml

PAGE_BYTES = 4096
STRUCT_PAGE_BYTES = 64  # sizeof(struct page), include/linux/mm_types.h; the native build checks it
PAGES_PER_SECTION = 32768  # SECTION_SIZE_BITS 27 - PAGE_SHIFT 12, arch/x86/include/asm/sparsemem.h
SECTION_BYTES = PAGES_PER_SECTION * PAGE_BYTES
MAX_DEVICE_BYTES = 1 << 52  # MAX_PHYSMEM_BITS with five page-table levels, same header
MAX_VMEMMAP_SHIFT = 18  # compounds of 1 GiB, the largest align= of a devdax namespace
DAX_ORDERS = (0, 9, 18)  # alignments that x86 has page sizes for: nd_pfn_supported_alignments()
VMEMMAP_RESERVE_PAGES = 2  # VMEMMAP_RESERVE_NR, include/linux/mm.h: vmemmap pages kept a compound

MAX_LAUNCHES = 1000
MAX_ROUNDS = 1000

Stage = Literal["native", "vm"]
NAMESPACE_TYPES = ("FS_DAX", "GENERIC")
"""Types of a pmem namespace's pages: fsdax and devdax. The others take a module that asks."""

BEFORE = "before"
BEFORE_AGAIN = "before-again"
PUBLISHED = "published"
IMPLIED = (BEFORE, BEFORE_AGAIN)
"""Variants every experiment has: the base, linked twice, for the noise floor."""

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"([0-9]{1,18}) ?([KMGT]?)(IB)?", re.IGNORECASE)


def _read_size(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None or (match[3] and not match[2]):
        raise ValueError("not a size: write a whole number with K, M, G, T, KiB, MiB, GiB or TiB")
    size = int(match[1]) * _UNITS[match[2].upper()]
    if size == 0:
        raise ValueError("a size of 0 leaves nothing to measure")
    return size


def parse_size(text: str) -> int:
    """Bytes of "100GiB", "64G", "2M" or "4096"; units are binary, as memparse() has them.

    Raises BadUsage naming the text. "GB" is refused: half the world means 10^9 by it.
    """
    try:
        return _read_size(text)
    except ValueError as cause:
        raise BadUsage(f"{cause} (it is {text!r})") from cause


def format_size(nr_bytes: int) -> str:
    """The shortest exact binary form: 107374182400 is "100 GiB", 1000 is "1000 B"."""
    for unit, scale in reversed(_UNITS.items()):
        if unit and nr_bytes >= scale and nr_bytes % scale == 0:
            return f"{nr_bytes // scale} {unit}iB"
    return f"{nr_bytes} B"


def _size(value: object) -> object:
    return _read_size(value) if isinstance(value, str) else value


def _whole_sections(size: int) -> int:
    if size % SECTION_BYTES:
        raise ValueError(f"not a whole number of sections of {format_size(SECTION_BYTES)}")
    return size


DeviceBytes = Annotated[
    int,
    BeforeValidator(_size),
    Field(gt=0, le=MAX_DEVICE_BYTES),
    AfterValidator(_whole_sections),
]


class PublishedRef(Value):
    """Which row of which published table a row of ours is compared with."""

    id: Name
    params: Scalars


class RowBase(Value):
    """What a row has in every experiment; each experiment adds its own parameters."""

    name: Name
    stage: Stage = "native"
    rounds: int = Field(ge=1, le=MAX_ROUNDS)
    threads: int | None = Field(default=None, ge=1)
    published: PublishedRef | None = None
    differs: Texts = ()
    no_verdict: str | None = None

    @model_validator(mode="after")
    def _a_verdict_needs_a_table(self) -> Self:
        if self.no_verdict is not None and self.published is None:
            raise ValueError("no_verdict is given, but no published table to have a verdict on")
        return self

    @abstractmethod
    def params(self) -> dict[str, Scalar | None]:
        """The row's parameters as the record and --json have them."""

    @abstractmethod
    def title(self) -> str:
        """The row's parameters in a few words, for people."""


class ZoneDeviceRow(RowBase):
    """One call of memmap_init_zone_device(): a device of some size, type and compound order.

    In the vm stage FS_DAX and GENERIC are a pmem namespace, made and bound by ndctl, then unbound
    and bound again: first_touch is the first bind, else every other. The other types are the
    whole memremap_pages() of a module of ours.
    """

    device_bytes: DeviceBytes
    order: int = Field(ge=0, le=MAX_VMEMMAP_SHIFT)
    type: Literal["PRIVATE", "COHERENT", "FS_DAX", "GENERIC", "PCI_P2PDMA"]
    altmap: bool = False
    pre_state: Literal["evicted", "dirty"] = "evicted"
    first_touch: bool = False

    @model_validator(mode="after")
    def _an_altmap_leaves_pages(self) -> Self:
        # The map is aligned to a compound page, and to 2 MiB: nd_pfn_init() of pfn_devs.c.
        if self.altmap and self.device_bytes <= max(PAGE_BYTES << self.order, SECTION_BYTES // 64):
            raise ValueError("with an altmap the map takes the whole device: make it larger")
        return self

    @model_validator(mode="after")
    def _a_guest_can_make_it(self) -> Self:
        if self.stage != "vm":
            return self
        if not self.in_namespace and self.altmap:
            raise ValueError(f"a {self.type} device has no memory of its own for an altmap")
        if self.type == "FS_DAX" and (self.order or not self.altmap):
            raise ValueError(
                "a guest's fsdax namespace has base pages, and the map on itself: order 0, altmap"
            )
        if self.type == "GENERIC" and self.order not in DAX_ORDERS:
            raise ValueError(
                "a devdax namespace is aligned to 4 KiB, 2 MiB or 1 GiB: order 0, 9, 18"
            )
        if self.pre_state != "evicted":
            raise ValueError("what the caches hold cannot be set in a guest")
        if self.first_touch and self.rounds != 1:
            raise ValueError("there is one first bind a boot: rounds must be 1")
        return self

    @property
    def in_namespace(self) -> bool:
        """In the vm stage: whether it is a pmem namespace, or what our module asks for."""
        return self.type in NAMESPACE_TYPES

    @property
    def is_first_bind(self) -> bool:
        """Of which each boot has one, however many rounds are asked for."""
        return self.stage == "vm" and self.first_touch

    @property
    def timed(self) -> str:
        """The kernel's function that is timed."""
        whole = self.stage == "vm" and not self.in_namespace
        return "memremap_pages()" if whole else "memmap_init_zone_device()"

    @property
    def nr_pages(self) -> int:
        """Pages of the device, those included that an altmap takes for the map itself."""
        return self.device_bytes // PAGE_BYTES

    @property
    def nr_sections(self) -> int:
        return self.nr_pages // PAGES_PER_SECTION

    @property
    def map_bytes(self) -> int:
        """Address range of the whole map; what is written may be less."""
        return self.nr_pages * STRUCT_PAGE_BYTES

    @property
    def pages_per_compound(self) -> int:
        """Struct pages written for each compound: compound_nr_pages() of mm/mm_init.c.

        Without an altmap, and if a compound's map is more than two pages long, its tails
        share one page of map and only the first two pages are written.
        """
        whole = 1 << self.order
        kept = VMEMMAP_RESERVE_PAGES * PAGE_BYTES // STRUCT_PAGE_BYTES
        return whole if self.altmap else min(whole, kept)

    @property
    def written_bytes(self) -> int:
        """Bytes of map one sample writes, before pages are skipped for an altmap: an estimate.

        The exact number comes with each sample.
        """
        nr_compounds = -(-self.nr_pages >> self.order)
        return nr_compounds * self.pages_per_compound * STRUCT_PAGE_BYTES

    def params(self) -> dict[str, Scalar | None]:
        return {
            "order": self.order,
            "type": self.type,
            "nr_pages": self.nr_pages,
            "altmap": self.altmap,
            "pre_state": self.pre_state if self.stage == "native" else None,
            "first_touch": self.first_touch,
            "threads": self.threads,
        }

    def title(self) -> str:
        words = [format_size(self.device_bytes), self.type, f"order {self.order}"]
        words.append("map on the device" if self.altmap else "map in RAM")
        if self.stage == "vm":
            when = ("the first bind", "rebinds") if self.in_namespace else ("the first", "the rest")
            words.append(f"{self.timed}, {when[0] if self.first_touch else when[1]}")
        else:
            words.append("first touch" if self.first_touch else self.pre_state)
        if self.threads is not None:
            words.append(f"at most {self.threads} CPUs")
        return ", ".join(words)


def _distinct(rows: tuple[ZoneDeviceRow, ...]) -> tuple[ZoneDeviceRow, ...]:
    # Counted here, not by min_length: that adds a false "too short" when a row is faulty.
    names = [row.name for row in rows]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"more than one row is called {', '.join(twice)}")
    if not rows:
        raise ValueError("there is no row")
    return rows


def _not_implied(name: str) -> str:
    if name in IMPLIED:
        raise ValueError("is implied: the base itself, without patches")
    return name


class ZoneDevice(Value):
    """The zone-device experiment; another experiment is another class with its own rows."""

    name: Literal["zone-device"]
    question: str
    launches: int = Field(ge=1, le=MAX_LAUNCHES)
    boots: int = Field(default=3, ge=1, le=MAX_LAUNCHES)
    """Launches of the vm stage: each boots every variant once for every device."""
    variants: Sealed[Annotated[Name, AfterValidator(_not_implied)], Texts]
    rows: Annotated[Tuple[ZoneDeviceRow], AfterValidator(_distinct)]

    def variant_names(self) -> tuple[str, ...]:
        """before, its second copy, then the file's own, in the file's order."""
        return (*IMPLIED, *self.variants)

    def row(self, name: str) -> ZoneDeviceRow | None:
        return next((row for row in self.rows if row.name == name), None)

    def at(self, stage: Stage) -> Self:
        """The same experiment with the rows, and the number of launches, of one stage.

        Raises BadUsage if it has no row there.
        """
        rows = tuple(row for row in self.rows if row.stage == stage)
        if not rows:
            raise BadUsage(f"{self.name} has no row for the {stage} stage")
        launches = self.boots if stage == "vm" else self.launches
        return self.model_copy(update={"rows": rows, "launches": launches})

    def only(self, names: Sequence[str]) -> Self:
        """The same experiment with these rows; raises BadUsage naming every unknown one."""
        if unknown := [name for name in names if self.row(name) is None]:
            known = ", ".join(row.name for row in self.rows)
            raise BadUsage(f"{self.name} has no row {', '.join(unknown)}; it has {known}")
        return self.model_copy(update={"rows": tuple(r for r in self.rows if r.name in names)})

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
                    if rounds is None or row.is_first_bind
                    else row.model_copy(update={"rounds": rounds})
                    for row in self.rows
                ),
            }
        )

    def single(self, row: ZoneDeviceRow) -> Self:
        """The same question asked of one row that is not in the file."""
        return self.model_copy(update={"rows": (row,)})


# The second experiment makes these a union, told apart by the file's `name`.
Experiment = ZoneDevice
Row = ZoneDeviceRow


def load(path: Path) -> Experiment:
    """Read one experiment file.

    Raises BadUsage with every fault of the file, one line each: file: field: fault (value).
    """
    try:
        return Experiment.model_validate(read_toml(path))
    except ValidationError as cause:
        raise faults(str(path), cause) from cause


def make_row(fields: Mapping[str, Any], *, source: str = "command line") -> Row:
    """A row from options instead of a file, held to the same rules.

    Raises BadUsage with every fault, each line beginning with `source`.
    """
    try:
        return Row.model_validate(dict(fields))
    except ValidationError as cause:
        raise faults(source, cause) from cause
