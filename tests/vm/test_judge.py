# SPDX-License-Identifier: GPL-2.0-only
"""`ream judge --vm`: the kernel's own tests see what no hosted row executes."""

from pathlib import Path

import pytest

from ream.errors import VerificationFailed
from ream.judge.guest import run_guests
from ream.judge.reach import Reach, WholeReach
from ream.kernel.series import load_series
from ream.kernel.source import Tree
from ream.paths import SERIES, cache_dir
from ream.progress import Reporter

WRONG = Path(__file__).parent / "patches" / "populate-every-second.patch"
RIGHT = ("rmap-exclusive", "fork")

FORK = Reach("fork", ("copy_page_range",), (), 64, None)
REACH = WholeReach(
    nr_functions=1,
    **dict.fromkeys(("changed", "added", "removed", "moved", "data", "layout"), ()),
    text_bytes=(0, 0),
    experiments=(FORK,),
    nearest=None,
)


def lines(kernel: Tree, logs: Path, *series: Path) -> list[str]:
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
    (line,) = lines(kernel, tmp_path, *(SERIES / name for name in RIGHT))
    assert line.startswith("fork: ")
    assert line.endswith("no result differs")


def test_what_no_row_executes_is_seen(kernel: Tree, tmp_path: Path) -> None:
    with pytest.raises(VerificationFailed, match=r"fork: madv_populate\..* fails with it"):
        lines(kernel, tmp_path, WRONG)
