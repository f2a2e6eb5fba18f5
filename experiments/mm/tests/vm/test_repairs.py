# SPDX-License-Identifier: GPL-2.0-only
"""Defects that were found show in guests of the kernels that have them, without repairs alone."""

from collections.abc import Callable
from functools import cache as once
from pathlib import Path

import pytest

from experiments.mm.found import Defect, defects, repairs
from ream.kernel.base import base_named
from ream.kernel.image import Image, build_image
from ream.kernel.source import fetch_tree
from ream.program.elsewhere import FRAGMENTS, run_in_guest
from ream.program.text import parse
from ream.progress import Reporter

pytestmark = pytest.mark.vm


@pytest.fixture(scope="module")
def images(cache: Path) -> Callable[[str], tuple[Image, ...]]:
    """A function that builds a kernel for guests: as it is, and with all repairs."""

    @once
    def make(kernel: str) -> tuple[Image, ...]:
        tree, its = fetch_tree(base_named(kernel), cache=cache, step=print), Reporter()
        return tuple(
            build_image(tree, one, cache=cache, fragments=FRAGMENTS, modules=(), reporter=its)
            for one in ([], repairs(kernel))
        )

    return make


@pytest.mark.parametrize(
    ("defect", "kernel"),
    [(one, kernel) for one in defects() for kernel in one.guests],
    ids=lambda its: its.name if isinstance(its, Defect) else its,
)
def test_its_program_shows_it_in_a_guest_without_the_repair_alone(
    images: Callable[[str], tuple[Image, ...]],
    defect: Defect,
    kernel: str,
    cache: Path,
    tmp_path: Path,
) -> None:
    program = parse(str(defect.program))
    held: list[list[int]] = []
    for number, image in enumerate(images(kernel)):
        log = tmp_path / "console.log"
        (said,) = run_in_guest([program], image, cache=cache, work=tmp_path, log=log)
        returned = {one["line"]: one["returned"] for one in said if "returned" in one}
        assert {at: returned[at] for at in defect.returned} == {
            at: both[number] for at, both in defect.returned.items()
        }
        # Behind the last step, each process has its contents noted.
        held.append([it for at, it in returned.items() if at > len(program)])
    assert (held[0] != held[1]) == defect.changes_contents
