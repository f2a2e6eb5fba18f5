# SPDX-License-Identifier: GPL-2.0-only
"""The zone-device experiment: initialising the struct pages of device memory."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from ream.counted import counted
from ream.experiment.section import PAGES_PER_SECTION, SECTION_BYTES, WholeSections
from ream.experiment.shape import PAGE_BYTES, STRUCT_PAGE_BYTES, ExperimentBase, RowBase, Stage
from ream.size import format_size
from ream.values import Scalar, Texts, Tuple

MAX_DEVICE_BYTES = 1 << 52  # MAX_PHYSMEM_BITS with five page-table levels, same header
MAX_VMEMMAP_SHIFT = 18  # compounds of 1 GiB, the largest align= of a devdax namespace
DAX_ORDERS = (0, 9, 18)  # alignments that x86 has page sizes for: nd_pfn_supported_alignments()
VMEMMAP_RESERVE_PAGES = 2  # VMEMMAP_RESERVE_NR, include/linux/mm.h: vmemmap pages kept a compound

NAMESPACE_TYPES = ("FS_DAX", "GENERIC")
"""Types of a pmem namespace's pages: fsdax and devdax. The others take a module that asks."""


Also = Literal["zero", "poison", "list"]
"""What a caller does besides: as init_on_alloc and page_init_poison() do before the call, with each
section's map, and as the test_hmm module does after it, with every page."""

ALSO: tuple[Also, ...] = ("zero", "poison", "list")

ALSO_WORDS = {"zero": "zeroing", "poison": "poisoning", "list": "list of free pages"}

Call = Literal["memmap_init_zone_device", "memremap_pages", "memunmap_pages"]

MOST_CHUNKS = 64
"""MOST_CALLS of kernel/modules/memmap."""

DeviceBytes = Annotated[WholeSections, Field(gt=0, le=MAX_DEVICE_BYTES)]


class ZoneDeviceRow(RowBase):
    """One call of memmap_init_zone_device(): a device of some size, type and compound order.

    In the vm stage FS_DAX and GENERIC are a pmem namespace, made and bound by ndctl, then unbound
    and bound again: first_touch is the first bind, else every other. The other types are the
    whole memremap_pages() of a module of ours.
    """

    stage: Literal["native", "vm"] = "native"
    device_bytes: DeviceBytes
    order: int = Field(ge=0, le=MAX_VMEMMAP_SHIFT)
    type: Literal["PRIVATE", "COHERENT", "FS_DAX", "GENERIC", "PCI_P2PDMA"]
    altmap: bool = False
    pre_state: Literal["evicted", "dirty"] = "evicted"
    first_touch: bool = False
    also: Tuple[Also] = ()
    chunk_bytes: DeviceBytes | None = None
    """Size of each call's range; None: one call covers all of the device."""
    cmdline: Texts = ()
    """More words for a guest's kernel."""
    call: Call = "memmap_init_zone_device"
    """What is timed in the native stage."""
    calls_before: int = Field(default=0, ge=0, le=9)
    """Native, of a whole call: how often the device was mapped and unmapped since the boot."""
    node: Literal["own", "none"] = "own"
    """What memremap_pages() is given in a guest: the caller's node, or NUMA_NO_NODE."""

    configurable: ClassVar[tuple[Stage, ...]] = ("native", "vm")

    @model_validator(mode="after")
    def _such_a_device_exists(self) -> Self:
        if self.device_bytes % (PAGE_BYTES << self.order):
            fits = (self.nr_pages & -self.nr_pages).bit_length() - 1
            raise ValueError(
                f"a device of order {self.order} is made of pages of"
                f" {format_size(PAGE_BYTES << self.order)}, and {format_size(self.device_bytes)} is"
                f" no whole number of them: give another size, or order 0 to {fits}"
            )
        if self.altmap and not self.in_namespace:
            raise ValueError(
                f"a {self.type} device has no memory of its own for an altmap: types"
                f" {' and '.join(NAMESPACE_TYPES)} have"
            )
        if self.chunk_bytes is not None and self.chunk_bytes > self.device_bytes:
            raise ValueError(
                f"chunk_bytes of {format_size(self.chunk_bytes)} are more than the device has: at"
                f" most {format_size(self.device_bytes)}"
            )
        if self.first_touch and self.pre_state != "evicted":
            raise ValueError(
                "no cache holds what was never touched: first_touch has pre_state evicted"
            )
        return self

    @model_validator(mode="after")
    def _its_callers_work_can_be_done(self) -> Self:
        if (self.also or self.chunk_bytes) and (self.altmap or self.order):
            raise ValueError("also and chunk_bytes are for base pages whose map lies in RAM")
        if self.stage == "native" and (self.cmdline or self.node != "own"):
            raise ValueError("cmdline and node are a guest's: the native stage boots no kernel")
        if (
            self.stage == "vm"
            and self.in_namespace
            and (self.also or self.chunk_bytes or self.node != "own")
        ):
            raise ValueError("also, chunk_bytes and node are for memremap_pages(), not a namespace")
        if self.stage == "vm" and {*self.also} - {"list"}:
            raise ValueError("in a guest it is config and cmdline that zero and poison a map")
        if self.stage == "vm" and self.nr_chunks > MOST_CHUNKS:
            raise ValueError(f"{self.nr_chunks} chunks; a guest tells of at most {MOST_CHUNKS}")
        return self

    @model_validator(mode="after")
    def _a_whole_call_is_hosted(self) -> Self:
        if self.call == "memmap_init_zone_device":
            if self.calls_before:
                raise ValueError("calls_before is of memremap_pages() and memunmap_pages()")
            return self
        if self.stage != "native":
            raise ValueError("call is the native stage's: a guest makes all calls of a bind")
        if self.also or self.chunk_bytes or self.first_touch or self.config:
            raise ValueError("a whole call has no also, chunk_bytes, first_touch or config")
        return self

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
    def nr_chunks(self) -> int:
        """How many calls there are."""
        return -(-self.device_bytes // (self.chunk_bytes or self.device_bytes))

    @property
    def fixed_rounds(self) -> bool:
        """A boot has one first bind, however many rounds are asked for."""
        return self.stage == "vm" and self.first_touch

    @property
    def timed(self) -> str:
        """The kernel's function that is timed."""
        whole = self.stage == "vm" and not self.in_namespace
        return "memremap_pages()" if whole else f"{self.call}()"

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
        nr_compounds = self.nr_pages >> self.order
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
            **self._circumstances(),
        }

    def _circumstances(self) -> dict[str, Scalar]:
        """What a caller, or its kernel, has that others have not; of most rows nothing."""
        said: dict[str, Scalar] = {
            "config": ", ".join(self.config),
            "cmdline": " ".join(self.cmdline),
            "also": ", ".join(self.also),
            "chunk_bytes": self.chunk_bytes or 0,
            "node": "" if self.node == "own" else self.node,
            "call": "" if self.call == "memmap_init_zone_device" else self.call,
            "calls_before": self.calls_before,
        }
        return {name: value for name, value in said.items() if value}

    def title(self) -> str:
        words = [format_size(self.device_bytes), self.type, f"order {self.order}"]
        words.append("map on the device" if self.altmap else "map in RAM")
        if self.stage == "vm":
            when = ("the first bind", "rebinds") if self.in_namespace else ("the first", "the rest")
            words.append(f"{self.timed}, {when[0] if self.first_touch else when[1]}")
        else:
            words.append("first touch" if self.first_touch else self.pre_state)
        if self.call != "memmap_init_zone_device":
            before = f"after {counted(self.calls_before, 'such call')}" if self.calls_before else ""
            words.append(f"{self.timed} {before or 'as the first'}")
        words += [f"calls of {format_size(self.chunk_bytes)}"] if self.chunk_bytes else []
        words += [f"and its {ALSO_WORDS[one]}" for one in self.also]
        words += ["no node given"] if self.node == "none" else []
        words += [f"with {', '.join(self.config)}"] if self.config else []
        words += self.cmdline
        if self.threads is not None:
            words.append(f"at most {counted(self.threads, 'CPU')}")
        return ", ".join(words)


class ZoneDevice(ExperimentBase[ZoneDeviceRow]):
    """The zone-device experiment, as its file has it."""

    name: Literal["zone-device"]


EXPERIMENT = ZoneDevice
