# SPDX-License-Identifier: GPL-2.0-only
"""Reads a guest's kernel memory directly from the memory of QEMU's process.

QMP's memsave gives the same bytes a kilobyte at a time, which takes ten times as long; a test
compares the two. Virtual addresses are translated as the CPU does, by the guest's page tables.
Sources: 4- and 5-level paging, volume 3 of Intel's manual, chapter 4; of arm64 the Arm Architecture
Reference Manual, D8.3, with pages of 4 KiB and addresses of 48 bits.
"""

import ctypes
import os
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ream.errors import CannotRunHere, ReamError

PAGE_BYTES = 4096
BLOCK_BYTES = 2 << 20
"""Bytes that one PMD entry maps, and the unit in which QEMU's memory is located."""

ENTRIES = 512
PRESENT, LARGE = 1, 1 << 7
FRAME = 0x000F_FFFF_FFFF_F000
"""Bits of an entry with the physical address of a table or page."""

ARM64_FRAME = 0x0000_FFFF_FFFF_F000
ARM64_TABLE = 1 << 1
"""Bit that is set if an entry above the last level points to a table, clear if to a block."""

LA57 = 1 << 12
"""Bit of CR4 that enables page tables with five levels."""

MOST_PIECES = 1024
"""IOV_MAX of Linux."""

_REGISTER = r"\b{}=([0-9a-f]+)"


class _Piece(ctypes.Structure):
    """struct iovec."""

    _fields_ = (("base", ctypes.c_void_p), ("nr_bytes", ctypes.c_size_t))


_libc = ctypes.CDLL(None, use_errno=True)
_readv = _libc.process_vm_readv
_readv.restype = ctypes.c_ssize_t
_readv.argtypes = (
    *(ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong),
    *(ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong),
)


class GuestMemory:
    """A range of a stopped guest's kernel virtual memory.

    pid: QEMU's process id. ask: sends a line to QEMU's human monitor and returns the answer. ttbr1:
    that register's value in an arm64 guest, which QEMU does not report; None: the guest is x86-64.
    The range begins and ends at a page boundary. `memory[first:last]` reads like an array of bytes,
    each time anew. A page that is not mapped or outside of RAM raises ReamError with its address.
    """

    def __init__(
        self,
        pid: int,
        ask: Callable[[str], str],
        address: int,
        nr_bytes: int,
        places: dict[int, int],
        *,
        ttbr1: int | None = None,
    ) -> None:
        self._pid = pid
        self._ask = ask
        self._nr_bytes = nr_bytes
        self._places = places
        self._ttbr1 = ttbr1
        self._frame = np.uint64(FRAME if ttbr1 is None else ARM64_FRAME)
        self._pages = self._translate(address, nr_bytes)

    def __len__(self) -> int:
        return self._nr_bytes

    def __getitem__(self, part: slice) -> NDArray[np.uint8]:
        """Return bytes from part.start up to part.stop; fewer if the range ends before."""
        first, last, _ = part.indices(self._nr_bytes)
        if last <= first:
            return np.empty(0, np.uint8)
        begin, end = first // PAGE_BYTES, -(-last // PAGE_BYTES)
        held = self._read(self._pages[begin:end])
        return held[first - begin * PAGE_BYTES : last - begin * PAGE_BYTES]

    # --- addresses ---------------------------------------------------------------------

    def _translate(self, address: int, nr_bytes: int) -> NDArray[np.uint64]:
        """Return the physical address of every page of the range."""
        top, nr_levels = self._tables()
        first, last = address // PAGE_BYTES, -(-(address + nr_bytes) // PAGE_BYTES)
        numbers = np.arange(first, last, dtype=np.uint64)
        table = np.full(len(numbers), np.uint64(top) & self._frame, np.uint64)
        return self._walk(table, numbers, nr_levels)

    def _tables(self) -> tuple[int, int]:
        """Return the register that points to the topmost table, and the number of levels."""
        if self._ttbr1 is not None:
            return self._ttbr1, 4
        said = self._ask("info registers")
        cr3, cr4 = (self._register(name, said) for name in ("CR3", "CR4"))
        return cr3, 5 if cr4 & LA57 else 4

    def _walk(
        self, table: NDArray[np.uint64], numbers: NDArray[np.uint64], level: int
    ) -> NDArray[np.uint64]:
        """Follow page tables from `table`, each page's own, down to the page itself."""
        shift = np.uint64(9 * (level - 1))
        index = numbers >> shift & np.uint64(ENTRIES - 1)
        entries = self._entries(table, index)
        if not (entries & np.uint64(PRESENT)).all():
            lost = int(numbers[np.argmin(entries & np.uint64(PRESENT))]) * PAGE_BYTES
            raise ReamError(f"the guest's kernel maps nothing at {lost:#x}")
        frames = entries & self._frame
        if level == 1:
            return frames
        found = np.empty_like(frames)
        # Large pages end here, others go one level down. Bit 12 of a large page is no address bit.
        if self._ttbr1 is None:
            large = entries & np.uint64(LARGE) != 0
        else:
            large = entries & np.uint64(ARM64_TABLE) == 0
        within = np.uint64((1 << 9 * (level - 1)) - 1)
        base = frames[large] & ~(within * np.uint64(PAGE_BYTES))
        found[large] = base + (numbers[large] & within) * np.uint64(PAGE_BYTES)
        if not large.all():
            found[~large] = self._walk(frames[~large], numbers[~large], level - 1)
        return found

    def _entries(self, table: NDArray[np.uint64], index: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return one entry of each table; every distinct table is read once."""
        distinct, which = np.unique(table, return_inverse=True)
        held = self._read(distinct).view("<u8").reshape(len(distinct), ENTRIES)
        entries: NDArray[np.uint64] = held[which, index]
        return entries

    @staticmethod
    def _register(name: str, said: str) -> int:
        match = re.search(_REGISTER.format(name), said)
        if match is None:
            raise ReamError(f"QEMU's `info registers` does not tell {name}")
        return int(match[1], 16)

    # --- QEMU's memory -----------------------------------------------------------------

    def _read(self, pages: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """Return the bytes of physical pages, one after the other."""
        to = np.empty(len(pages) * PAGE_BYTES, np.uint8)
        blocks, which = np.unique(pages // np.uint64(BLOCK_BYTES), return_inverse=True)
        places = np.array([self._place(int(block)) for block in blocks], np.uint64)
        start = places[which] + pages % np.uint64(BLOCK_BYTES)
        # Pages that are adjacent in QEMU's memory are read together.
        breaks = np.flatnonzero(np.diff(start) != PAGE_BYTES) + 1
        edges = np.concatenate(([0], breaks, [len(start)]))
        at = 0
        for first in range(0, len(edges) - 1, MOST_PIECES):
            some = edges[first : first + MOST_PIECES + 1]
            pieces = [
                _Piece(int(start[begin]), int(end - begin) * PAGE_BYTES)
                for begin, end in pairwise(some)
            ]
            at += self._fill(to[at:], pieces)
        return to

    def _fill(self, to: NDArray[Any], pieces: list[_Piece]) -> int:
        wanted = int(sum(piece.nr_bytes for piece in pieces))
        local = _Piece(to.ctypes.data, wanted)
        remote = (_Piece * len(pieces))(*pieces)
        got = int(_readv(self._pid, ctypes.byref(local), 1, remote, len(pieces), 0))
        if got == wanted:
            return wanted
        error = ctypes.get_errno() if got < 0 else 0
        if error:
            raise CannotRunHere(
                f"cannot read the guest's memory: {os.strerror(error)}; whoever may trace "
                "their own processes can (kernel.yama.ptrace_scope of 0 or 1)"
            )
        raise ReamError(f"read {got} bytes of the guest's memory instead of {wanted}")

    def _place(self, block: int) -> int:
        """Return QEMU's address of a block of guest memory; QEMU is asked once for each block."""
        if block not in self._places:
            said = self._ask(f"gpa2hva {block * BLOCK_BYTES:#x}")
            match = re.search(r"is (0x[0-9a-f]+)", said)
            if match is None:
                raise ReamError(f"the guest's memory at {block * BLOCK_BYTES:#x}: {said.strip()}")
            self._places[block] = int(match[1], 16)
        return self._places[block]
