# SPDX-License-Identifier: GPL-2.0-only
"""Kernels that may run as guests of Xen PV, where what reads or writes a PTE is a call."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ream.command import Command, run
from ream.kernel.build import build_objects
from ream.kernel.series import Patch, load_series
from ream.kernel.source import Tree
from ream.kernel.variant import assemble
from ream.paths import SERIES
from ream.stage.bench import NATIVE_CONFIG

pytestmark = pytest.mark.vm
"""A configuration of its own is a minute of compiling: for `make test-vm`."""

PATCHES = Path(__file__).parent / "patches"

XEN = "".join(
    f"CONFIG_{option}=y\n"
    for option in ("PCI", "ACPI", "HYPERVISOR_GUEST", "PARAVIRT", "PARAVIRT_XXL", "XEN", "XEN_PV")
)

FORK = tuple(
    patch
    for name in ("rmap-exclusive", "pte-hw-done", "fork")
    for patch in load_series(SERIES / name).patches
)
ADVANCES_ONE = load_series(PATCHES / "fork-single-entry-advanced.patch").patches

SOURCE = """\
// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mm.h>

void set_one_pte(struct mm_struct *mm, unsigned long addr, pte_t *ptep, pte_t pte);

void set_one_pte(struct mm_struct *mm, unsigned long addr, pte_t *ptep, pte_t pte)
{
	set_ptes(mm, addr, ptep, pte, 1);
}
"""

Calls = Callable[[tuple[Patch, ...]], int]


@pytest.fixture
def calls(kernel: Tree, cache: Path, tmp_path: Path) -> Calls:
    """A function that compiles SOURCE in a variant of the kernel, and counts its calls."""
    config, home = tmp_path / "xen.config", tmp_path / "set_one_pte.c"
    config.write_text(XEN)
    home.write_text(SOURCE)

    def count(patches: tuple[Patch, ...]) -> int:
        place = assemble(
            kernel,
            patches,
            cache=cache,
            fragments=[NATIVE_CONFIG, config],
            homes=[home],
            step=print,
        )
        (built,) = build_objects(place, [f"ream/{home.stem}.o"], step=print).values()
        words = ("objdump", f"--disassemble={home.stem}", "--no-show-raw-insn", str(built))
        listing = run(Command(words, tmp_path, 60.0))
        assert f"<{home.stem}>:" in listing
        print(listing)
        return sum("call" in line.split() for line in listing.splitlines())

    return count


def test_fork_sets_a_single_entry_by_as_many_calls_as_the_base(calls: Calls) -> None:
    """The compiler keeps an asm statement with a call, even if nobody uses what that returns."""
    base = calls(())
    assert base > 0
    assert calls(FORK) == base
    assert calls((*FORK, *ADVANCES_ONE)) > base
