# SPDX-License-Identifier: GPL-2.0-only
"""Rows of fork whose pages go back to the page allocator."""

from pathlib import Path

import pytest

from experiments.fork import freeing
from experiments.fork.hosted import HOSTED
from experiments.fork.rows import ForkRow
from ream.experiment import named
from ream.stage.native import Build

NATIVE = named("fork").at("native").rows


def row(**given) -> ForkRow:
    return ForkRow(
        **{"name": "row", "folio_bytes": "64k", "operation": "munmap", "rounds": 1, **given}
    )


def test_every_row_is_one_program_s() -> None:
    assert freeing.FREEING in HOSTED.beside
    assert not any(HOSTED.runs(one) and freeing.FREEING.runs(one) for one in NATIVE)
    assert any(map(freeing.FREEING.runs, NATIVE))


def test_the_runner_is_told_what_the_row_says(tmp_path: Path) -> None:
    asked = row(operation="exit", frees=True, pre_state="cold", mapping_bytes="512m", rounds=2)
    with freeing.plan_of([asked], None, Build({}, {}), tmp_path) as (plan, files):
        said = dict(word.split("=") for word in plan.read_text().split())
    assert not files
    assert (said["exits"], said["order"], said["shuffled"], said["held_every"]) == (*"1410",)
    assert int(said["nr_mapped"]) == (512 << 20) // 4096
    assert int(said["nr_pages"]) * 4096 % freeing.NODE_STEP == 0
    assert int(said["nr_pages"]) > int(said["nr_mapped"])


@pytest.mark.parametrize("seed", range(50))
def test_a_mixture_can_be_made(seed: int) -> None:
    one = freeing._mixed(seed)
    assert one == freeing._mixed(seed)
    assert one.mapping_bytes % (4096 << one.order) == 0


@pytest.mark.parametrize(
    "given", [{"operation": "fork"}, {"stage": "vm"}, {"mm_users": 2}, {"operation": "refork"}]
)
def test_only_what_is_unmapped_can_be_freed(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="frees is for munmap and exit"):
        row(**{"frees": True, **given})
