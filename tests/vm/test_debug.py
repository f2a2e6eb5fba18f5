# SPDX-License-Identifier: GPL-2.0-only
"""Code that watches every store gets the old loop: KASAN, an enabled page_ref_set tracepoint."""

import re
import subprocess
from pathlib import Path

import pytest

from fixtures.guests import Builder
from ream.kernel.build import build_objects
from ream.kernel.series import load_series
from ream.kernel.source import Tree
from ream.kernel.variant import assemble
from ream.paths import CHECKOUT, KERNEL_CONFIG, SERIES, cache_dir
from ream.stage.qemu import GuestMachine
from ream.stage.selftests import Selftests, run_selftests

OBSERVERS = [CHECKOUT / "kernel" / "modules" / name for name in ("memmap", "memremap")]

PAGES = (2 << 30) // 4096
STRAY_REFS = 1000
"""Pages that a bind takes for its page tables and the like, each an event: about 20 were seen."""

SHIPPED = (("zone-device",), ("zone-device", "zone-device-parallel"))


def streaming_stores(kernel: Tree, series: tuple[str, ...], *configs: str) -> int:
    """How many there are in mm/mm_init.o."""
    patches = [patch for name in series for patch in load_series(SERIES / name).patches]
    variant = assemble(
        kernel,
        patches,
        cache=cache_dir(),
        fragments=[KERNEL_CONFIG / f"{name}.config" for name in configs],
        homes=(),
        step=print,
    )
    built = build_objects(variant, ["mm/mm_init.o"], step=print)["mm/mm_init.o"]
    listing = subprocess.run(["objdump", "-d", built], capture_output=True, text=True, check=True)
    return listing.stdout.count("movnti")


@pytest.mark.parametrize("series", SHIPPED, ids="+".join)
def test_kasan_sees_every_store(kernel: Tree, series: tuple[str, ...]) -> None:
    assert streaming_stores(kernel, series, "vm") > 0
    assert streaming_stores(kernel, series, "vm", "vm-debug") == 0


def expected_refs(device: str, order: int) -> int:
    """Events of the old loop: a page is given a reference, and some lose it again.

    A compound page has two pages of descriptors, the second of which stands for all others as
    well (vmemmap_populate_compound_pages()): 1 head, 127 tails, and two events more for taking
    these two pages from the buddy allocator.
    """
    own = 2 if device == "PRIVATE" else 1
    if order == 0:
        return PAGES * own
    return (PAGES >> order) * (1 + 2 * 127 + 2)


@pytest.mark.parametrize(("device", "order"), [("FS_DAX", 0), ("PRIVATE", 0), ("GENERIC", 9)])
@pytest.mark.parametrize("series", SHIPPED, ids="+".join)
def test_an_enabled_tracepoint_sees_every_reference_and_costs_nothing_afterwards(
    series: tuple[str, ...], device: str, order: int, image: Builder, tmp_path: Path
) -> None:
    built = image(*series, config="vm-trace", modules=OBSERVERS)
    tests = Selftests(
        modules=("memmap", "memremap"),
        programs=(str(Path(__file__).with_name("page_refs")),),
        words=(
            *(f"memremap.type={device}", f"memremap.order={order}"),
            *(f"memremap.size={PAGES * 4096}", "memremap.rounds=0"),
        ),
        skips={},
        added={},
    )
    log = tmp_path / "console.log"
    # Instructions are counted: a nanosecond of guest time is one.
    run_selftests(GuestMachine("tcg", icount=True), built, tests, work=tmp_path, log=log)
    phases = re.findall(
        r"phase=(\S+) nr_pages=(\d+) time_ns=(\d+) page_refs=(\S+)", log.read_text()
    )
    assert [(name, int(pages)) for name, pages, _, _ in phases] == [
        ("off", PAGES),
        ("on", PAGES),
        ("off-again", PAGES),
    ]
    off, on, off_again = (int(time_ns) for _, _, time_ns, _ in phases)
    assert off_again == pytest.approx(off, rel=0.01)
    assert on > 1.5 * off
    nr_refs = int(phases[1][3])
    assert 0 <= nr_refs - expected_refs(device, order) < STRAY_REFS
