# SPDX-License-Identifier: GPL-2.0-only
"""How many pages compaction isolates at once, with pages of any size: bounded in bytes."""

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ream.kernel.series import load_series
from ream.kernel.source import Tree
from ream.paths import SERIES

pytestmark = pytest.mark.native

LIMITS = Path(__file__).with_name("limits")
COMPACTION = Path("mm/compaction.c")

CLUSTER = 32
COSTLY_ORDER = 3
HUGE_BYTES = 2 << 20
KIB = 1 << 10
PAGES = {4: 9, 16: 11, 64: 13}
"""KiB of a page, and the order of a pageblock that page tables of arm64 have then."""

Limits = Callable[[int, int], Mapping[int, int]]


@pytest.fixture(scope="module")
def limits(kernel: Tree, tmp_path_factory: pytest.TempPathFactory) -> Limits:
    """A function of a page's KiB and a block's order: by order, what the series isolates."""
    work = tmp_path_factory.mktemp("limits")
    source = work / COMPACTION
    source.parent.mkdir()
    shutil.copyfile(kernel.path / COMPACTION, source)
    series = (load_series(SERIES / name) for name in ("compact-fixes", "compact"))
    for patch in (one for its in series for one in its.patches):
        subprocess.run(
            ("patch", "-p1", "--silent", "--no-backup-if-mismatch"),
            input=_of(patch.body.decode(), COMPACTION),
            cwd=work,
            text=True,
            check=True,
        )
    cut = re.search(
        r"^static unsigned int isolation_limit\(.*?^}\n",
        source.read_text(),
        re.MULTILINE | re.DOTALL,
    )
    assert cut
    (work / "isolation_limit.h").write_text(cut[0])

    def ask(kib: int, block_order: int) -> Mapping[int, int]:
        program = work / f"limits-{kib}"
        sizes = (f"-DPAGE_SIZE={kib * KIB}UL", f"-Dpageblock_order={block_order}")
        words = ("gcc", "-Wall", "-I", str(work), *sizes, "-o", str(program), LIMITS / "limits.c")
        subprocess.run(words, check=True)
        said = subprocess.check_output([program], text=True)
        return {int(order): int(pages) for order, pages in map(str.split, said.splitlines())}

    return ask


def _of(patch: str, file: Path) -> str:
    """The part of a patch that changes one file."""
    parts = re.split(r"^(?=diff --git )", patch, flags=re.MULTILINE)
    return "".join(part for part in parts if part.startswith(f"diff --git a/{file} "))


@pytest.mark.parametrize("kib", PAGES)
def test_no_more_than_a_huge_page_or_a_cluster_is_isolated_at_once(
    limits: Limits, kib: int
) -> None:
    found = limits(kib, PAGES[kib])
    most = max(HUGE_BYTES, CLUSTER * kib * KIB)
    assert {order: pages for order, pages in found.items() if pages * kib * KIB > most} == {}
    assert all(pages >= CLUSTER for pages in found.values())


def test_a_block_of_small_pages_is_isolated_whole_for_a_huge_page(limits: Limits) -> None:
    found = limits(4, PAGES[4])
    assert found[9] * 4 * KIB == HUGE_BYTES
    assert all(found[order] == CLUSTER for order in range(-1, COSTLY_ORDER + 1))


def test_a_pageblock_of_fewer_pages_than_a_cluster_limits_nothing(limits: Limits) -> None:
    """The sh architecture with huge pages of 64 KiB is an example."""
    assert set(limits(4, 4).values()) == {CLUSTER}
