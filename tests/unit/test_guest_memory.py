# SPDX-License-Identifier: GPL-2.0-only
"""Reading a guest in place, tried on a made-up one: page tables in memory of this process."""

import os

import numpy as np
import pytest
from numpy.typing import NDArray

from ream.errors import ReamError
from ream.stage.guest_memory import BLOCK_BYTES, PAGE_BYTES, GuestMemory

MAP = 0xFFFFEA0004000000
"""In the vmemmap, as four levels have it."""

NR_BLOCKS = 8
PRESENT, LARGE = 1, 1 << 7
CR3, PUD, PMD, PTE = 0x1000, 0x2000, 0x3000, 0x4000


class FakeGuest:
    """Eight blocks of guest memory, each somewhere else in ours, and a monitor that knows."""

    def __init__(self, levels: int = 4) -> None:
        self.blocks = [np.random.default_rng(n).bytes(BLOCK_BYTES) for n in range(NR_BLOCKS)]
        self.memory = [np.frombuffer(bytearray(block), np.uint8) for block in self.blocks]
        self.levels = levels
        self.asked: list[str] = []

    def words(self, physical: int) -> NDArray[np.uint64]:
        """One page of the guest as the eight-byte words of a table."""
        block, at = divmod(physical, BLOCK_BYTES)
        return self.memory[block][at : at + PAGE_BYTES].view("<u8")

    def table(self, physical: int, index: int, entry: int) -> None:
        self.words(physical)[index] = entry

    def held(self, physical: int, nr_bytes: int) -> bytes:
        block, at = divmod(physical, BLOCK_BYTES)
        return self.memory[block][at : at + nr_bytes].tobytes()

    def ask(self, line: str) -> str:
        self.asked.append(line)
        if line == "info registers":
            cr4 = 1 << 12 if self.levels == 5 else 0
            return f"CR0=80050033 CR2=0000000000000000 CR3={CR3:016x} CR4={cr4:08x}\n"
        block = int(line.removeprefix("gpa2hva "), 16) // BLOCK_BYTES
        if block >= NR_BLOCKS:
            return "No memory is mapped at address 0x40000000\n"
        address = self.memory[block].ctypes.data
        return f"Host virtual address for {line.split()[1]} (ram) is {address:#x}\n"

    def read(self, nr_bytes: int) -> GuestMemory:
        return GuestMemory(os.getpid(), self.ask, MAP, nr_bytes, {})


@pytest.fixture
def guest() -> FakeGuest:
    """Two large pages, far apart, then one whose pages of 4 KiB are all the same but the first."""
    fake = FakeGuest()
    for table in (CR3, PUD, PMD, PTE):
        fake.words(table)[:] = 0
    fake.table(CR3, MAP >> 39 & 511, PUD | PRESENT)
    fake.table(PUD, MAP >> 30 & 511, PMD | PRESENT)
    first = MAP >> 21 & 511
    fake.table(PMD, first, 5 * BLOCK_BYTES | PRESENT | LARGE)
    fake.table(PMD, first + 1, 3 * BLOCK_BYTES | PRESENT | LARGE | 1 << 63)  # no-execute
    fake.table(PMD, first + 2, PTE | PRESENT)
    fake.words(PTE)[:] = 2 * BLOCK_BYTES + PAGE_BYTES | PRESENT
    fake.table(PTE, 0, 2 * BLOCK_BYTES | PRESENT)
    return fake


def test_a_range_over_pages_of_both_sizes_is_read_as_the_cpu_would(guest: FakeGuest) -> None:
    memory = guest.read(3 * BLOCK_BYTES)
    assert len(memory) == 3 * BLOCK_BYTES
    whole = memory[0 : len(memory)].tobytes()
    assert whole[:BLOCK_BYTES] == guest.held(5 * BLOCK_BYTES, BLOCK_BYTES)
    assert whole[BLOCK_BYTES : 2 * BLOCK_BYTES] == guest.held(3 * BLOCK_BYTES, BLOCK_BYTES)
    assert whole[2 * BLOCK_BYTES :][:PAGE_BYTES] == guest.held(2 * BLOCK_BYTES, PAGE_BYTES)
    alias = guest.held(2 * BLOCK_BYTES + PAGE_BYTES, PAGE_BYTES)
    assert whole[2 * BLOCK_BYTES + PAGE_BYTES :] == alias * 511


@pytest.mark.parametrize(
    ("first", "last"),
    [(0, 1), (63, 65), (4095, 4097), (BLOCK_BYTES - 1, BLOCK_BYTES + 1), (100, 100), (7, 3)],
)
def test_a_slice_is_what_it_would_be_of_the_whole(guest: FakeGuest, first: int, last: int) -> None:
    memory = guest.read(2 * BLOCK_BYTES)
    whole = memory[0 : len(memory)]
    assert (memory[first:last] == whole[first:last]).all()
    assert len(memory[first:last]) == max(0, last - first)


def test_a_slice_ends_where_the_range_does(guest: FakeGuest) -> None:
    assert len(guest.read(PAGE_BYTES)[4000:9999]) == 96


def test_a_block_is_looked_for_once(guest: FakeGuest) -> None:
    places: dict[int, int] = {}
    for _ in range(2):
        memory = GuestMemory(os.getpid(), guest.ask, MAP, 2 * BLOCK_BYTES, places)
        assert len(memory[0 : 2 * BLOCK_BYTES]) == 2 * BLOCK_BYTES
    assert len([line for line in guest.asked if line.startswith("gpa2hva")]) == len(places) == 3


def test_what_is_written_meanwhile_is_read_the_next_time(guest: FakeGuest) -> None:
    memory = guest.read(BLOCK_BYTES)
    guest.memory[5][42] ^= 0xFF
    assert memory[42:43][0] == guest.memory[5][42]


def test_five_levels_are_walked(guest: FakeGuest) -> None:
    guest.levels = 5
    top = 0x5000
    guest.words(top)[:] = 0
    guest.table(top, 511, CR3 | PRESENT)
    ask = guest.ask
    guest.ask = lambda line: ask(line).replace(f"CR3={CR3:016x}", f"CR3={top:016x}")  # type: ignore[method-assign]
    assert guest.read(PAGE_BYTES)[0:64].tobytes() == guest.held(5 * BLOCK_BYTES, 64)


def test_tables_of_arm64_are_walked_from_the_register_that_it_says(guest: FakeGuest) -> None:
    valid, table, asid = 1, 2, 7 << 48
    for physical in (CR3, PUD, PMD, PTE):
        guest.words(physical)[:] = 0
    guest.table(CR3, MAP >> 39 & 511, PUD | table | valid)
    guest.table(PUD, MAP >> 30 & 511, PMD | table | valid)
    first = MAP >> 21 & 511
    guest.table(PMD, first, 5 * BLOCK_BYTES | valid | 1 << 54)  # a block, not to be executed
    guest.table(PMD, first + 1, PTE | table | valid)
    guest.table(PTE, 0, 3 * BLOCK_BYTES + PAGE_BYTES | table | valid)
    memory = GuestMemory(
        *(os.getpid(), guest.ask, MAP, BLOCK_BYTES + PAGE_BYTES, {}), ttbr1=CR3 | asid | 1
    )
    assert memory[0:BLOCK_BYTES].tobytes() == guest.held(5 * BLOCK_BYTES, BLOCK_BYTES)
    held = guest.held(3 * BLOCK_BYTES + PAGE_BYTES, PAGE_BYTES)
    assert memory[BLOCK_BYTES : len(memory)].tobytes() == held
    assert "info registers" not in guest.asked


def test_an_address_that_maps_nothing_is_named(guest: FakeGuest) -> None:
    with pytest.raises(ReamError, match=f"maps nothing at {MAP + 3 * BLOCK_BYTES:#x}"):
        guest.read(4 * BLOCK_BYTES)


def test_memory_that_is_not_ram_is_named(guest: FakeGuest) -> None:
    guest.table(PMD, MAP >> 21 & 511, 512 * BLOCK_BYTES | PRESENT | LARGE)
    with pytest.raises(ReamError, match="No memory is mapped at address 0x40000000"):
        _ = guest.read(BLOCK_BYTES)[0:1]


def test_a_process_that_is_gone_cannot_be_read(guest: FakeGuest) -> None:
    memory = guest.read(BLOCK_BYTES)
    memory._pid = 2**22 + 1  # beyond the largest pid_max
    with pytest.raises(ReamError, match="cannot read the guest's memory"):
        _ = memory[0:1]
