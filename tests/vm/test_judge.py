# SPDX-License-Identifier: GPL-2.0-only
"""`ream judge --vm`: the kernel's own tests see what no hosted row executes."""

from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from ream.errors import VerificationFailed
from ream.judge import guest
from ream.judge.guest import Told, run_guests
from ream.judge.reach import Reach, WholeReach
from ream.kernel.series import load_series
from ream.kernel.source import Tree
from ream.paths import SERIES, cache_dir
from ream.progress import Reporter
from ream.stage.selftests import SELFTESTS, read_selftests

WRONG = Path(__file__).parent / "patches" / "populate-every-second.patch"
RIGHT = ("rmap-exclusive", "pte-hw-done", "fork")

FORK = Reach("fork", ("copy_page_range",), (), 64, None)
REACH = WholeReach(
    nr_functions=1,
    **dict.fromkeys(("changed", "added", "removed", "moved", "data", "layout"), ()),
    text_bytes=(0, 0),
    experiments=(FORK,),
    nearest=None,
)


QUICK = ("fork_kept", "mremap_dontunmap", "madv_populate", "mkdirty")
"""Programs of the list of fork that take a second; with the others a guest takes 20 minutes."""


@pytest.fixture(autouse=True)
def quick_list(monkeypatch: pytest.MonkeyPatch) -> None:
    its = read_selftests(SELFTESTS / "fork.list")
    programs = tuple(one for one in its.programs if PurePosixPath(one).name in QUICK)
    assert len(programs) == len(QUICK)
    monkeypatch.setattr(guest, "read_selftests", lambda _: replace(its, programs=programs))


def told(kernel: Tree, logs: Path, *series: Path) -> list[Told]:
    patches = [patch for path in series for patch in load_series(path).patches]
    return run_guests(
        REACH,
        (kernel, ()),
        (kernel, patches),
        cache=cache_dir(),
        logs=logs,
        reporter=Reporter(),
    )


def test_a_shipped_series_passes(kernel: Tree, tmp_path: Path) -> None:
    (its,) = told(kernel, tmp_path, *(SERIES / name for name in RIGHT))
    assert (its.name, its.decided) == ("fork", True)
    assert its.line.endswith("no result differs")
    assert not its.line.startswith("0 ")


def test_what_no_row_executes_is_seen(kernel: Tree, tmp_path: Path) -> None:
    with pytest.raises(VerificationFailed, match=r"fork: madv_populate\..* fails with it"):
        told(kernel, tmp_path, WRONG)
