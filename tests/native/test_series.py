# SPDX-License-Identifier: GPL-2.0-only
"""Each patch we ship is clean by itself: it applies, builds, and adds no warning of any judge."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from ream.folders import base_names
from ream.kernel.base import base_named
from ream.kernel.series import load_series, ported
from ream.kernel.source import Tree, fetch_tree
from ream.kernel.variant import DoesNotApply, rehearse
from ream.paths import CHECKOUT, EXPERIMENTS, SERIES
from replayed import misstated
from wrong import on_base, wrong_patches


def _with_those_below(series: Path) -> tuple[str, ...]:
    """A series NAME-MORE of an experiment's own folder stands on NAME, if there is one."""
    below = (
        one for one in sorted(series.parent.iterdir()) if series.name.startswith(f"{one.name}-")
    )
    return (*map(str, below), str(series))


OWN = sorted(EXPERIMENTS.glob("*/series/*"))
"""Series in an experiment's own folder; a folder that is named after a base holds ports."""

DRIVERS = ("dmaengine-fixes", "migrate-offload")
MIGRATE = (*DRIVERS, "migrate-beyond", "rmap-exclusive", "migrate-faster")
STACKED = (
    ("before/deferred-init",),
    ("zone-device", "zone-device-parallel"),
    ("before/large-mapcount", "before/fork"),
    ("rmap-exclusive", "pte-hw-done", "fork"),
    ("pte-hw-done", "mprotect"),
    ("zone-device", "deferred-init"),
    MIGRATE,
    ("compact-fixes", "compact"),
    ("mprotect-batch", "mprotect-batch-inline"),
    ("mprotect-batch", "mprotect-batch-single"),
    ("mprotect-batch", "mremap-batch", "mremap-hint"),
    ("all",),
    ("selftests",),
    # Of an experiment's own folder.
    *(_with_those_below(one) for one in OWN if one.name not in base_names()),
)
"""Series that are applied one after another."""


def _named(stack: Sequence[str]) -> str:
    return "+".join(Path(one).name if Path(one).is_absolute() else one for one in stack)


STACKS = tuple(pytest.param(stack, id=_named(stack)) for stack in STACKED)


BASES = tuple(base for base in base_names() if (SERIES / base).is_dir())
"""Those that series have been ported to."""


NOT_ON = {"7.3": ("before/large-mapcount",)}
"""By base, series that have nothing to change there."""


def _on(base: str, stack: Sequence[str]) -> tuple[str, ...]:
    there = (one for one in stack if one not in NOT_ON.get(base, ()))
    return tuple(ported(one, base, SERIES) for one in there)


PORTS = tuple(
    pytest.param(base, _on(base, stack), marks=pytest.mark.vm, id=f"{base}:{'+'.join(stack)}")
    for base in BASES
    for stack in STACKED
    if not set(_on(base, stack)) <= set(stack)
) + tuple(
    pytest.param(ports.name, (str(one),), marks=pytest.mark.vm, id=f"{ports.name}:{one.name}")
    for ports in OWN
    if ports.name in base_names()
    for one in sorted(ports.iterdir())
)


OF_OTHERS = {
    one
    for one in (path.name for path in SERIES.iterdir())
    if one.startswith(("mprotect-", "mremap-"))
}
"""What a kernel had, or what was proposed for it, written anew from its description."""


def test_all_of_ream_applies_on_one_base(kernel: Tree, cache: Path) -> None:
    """In the order of kernel/series/all: each series but those that take something out."""
    every = load_series(SERIES / "all")
    rehearse(every.patches, kernel, cache=cache)
    folders = (
        {path.name for path in SERIES.iterdir()}
        - {"all", "before", "selftests", *BASES}
        - OF_OTHERS
    )
    ours = {one.diff_sha256 for name in folders for one in load_series(SERIES / name).patches}
    assert {one.diff_sha256 for one in every.patches} == ours
    assert len(every.patches) == len(ours)


@pytest.mark.parametrize("base", [base for base in BASES if (SERIES / base / "all").is_dir()])
def test_all_of_ream_applies_on_a_base_that_it_is_ported_to(base: str, cache: Path) -> None:
    """In the order of kernel/series/all: the port of each series that has one."""
    every = load_series(SERIES / base / "all")
    rehearse(every.patches, fetch_tree(base_named(base), cache=cache, step=print), cache=cache)
    listed = (SERIES / "all" / "series").read_text().split()
    topics = [one.removeprefix("../") for one in listed if one.startswith("../")]
    ours = [load_series(SERIES / one) for one in _on(base, topics)]
    assert [one.diff_sha256 for one in every.patches] == [
        one.diff_sha256 for its in ours for one in its.patches
    ]


def _applies(stack: Sequence[str], patch: Path, kernel: Tree, cache: Path) -> bool:
    below = [one for name in stack for one in load_series(SERIES / name).patches]
    try:
        rehearse([*below, *load_series(patch).patches], kernel, cache=cache)
    except DoesNotApply:
        return False
    return True


OF_TESTS = [
    patch
    for tests in (CHECKOUT / "tests", *sorted(EXPERIMENTS.glob("*/tests")))
    for patch in sorted(tests.glob("*/patches/*.patch"))
]


@pytest.mark.parametrize("patch", OF_TESTS, ids=lambda it: it.stem)
def test_a_change_for_tests_applies_to_what_we_ship(patch: Path, kernel: Tree, cache: Path) -> None:
    """It is told otherwise when it is built, and most are seldom."""
    stacks = ((), ("all",), *STACKED, ("migrate-offload",))
    assert any(_applies(stack, patch, kernel, cache) for stack in stacks)


def _misstated(tree: Tree, stack: Sequence[str], work: Path) -> list[str]:
    """A series that others stand on as the first speaks of itself there."""
    firsts = {SERIES / one[0] for one in STACKED}
    folders = [SERIES / one for one in stack]
    return list(misstated(tree, folders, work, of_others=firsts & set(folders[1:])))


def test_every_wrong_patch_applies_to_the_variant_that_it_breaks(kernel: Tree, cache: Path) -> None:
    for path in sorted(EXPERIMENTS.glob("*/wrong/*.patch")):
        rehearse(wrong_patches(path), kernel, cache=cache)


@pytest.mark.parametrize("base", BASES)
def test_every_port_of_a_wrong_patch_applies_to_its_base(base: str, cache: Path) -> None:
    kernel = fetch_tree(base_named(base), cache=cache, step=print)
    for place in sorted(EXPERIMENTS.glob(f"*/wrong/{base}")):
        for series in on_base(place).values():
            rehearse(series.patches, kernel, cache=cache)


@pytest.mark.parametrize("stack", [one for one in STACKED if one != ("all",)], ids=_named)
def test_patches_and_covers_say_what_they_change(
    stack: Sequence[str], kernel: Tree, tmp_path: Path
) -> None:
    assert _misstated(kernel, stack, tmp_path) == []


CAST = re.compile(r"^\+.*\((?:atomic64_t|u64|s64) \*\)\s*&", re.MULTILINE)
"""A cast from the address of a field to that of one of another size."""


def test_no_patch_takes_two_counters_for_one_by_a_cast() -> None:
    assert not [one.name for one in SERIES.rglob("*.patch") if CAST.search(one.read_text())]


@pytest.mark.vm
@pytest.mark.parametrize(
    ("experiment", "row"),
    [
        ("fork", "fork-64k"),
        ("mprotect", "rw-to-r-64k-1GiB"),
        ("mremap", "within-64k"),
        ("migrate", "64k-serial"),
    ],
)
def test_all_of_ream_is_one_variant(ream, experiment: str, row: str) -> None:
    """Verified beside the experiment's own variants, each of which has a part of it."""
    counts = ("--launches", "1", "--rounds", "1")
    ran = ream("run", experiment, "--row", row, "--series", str(SERIES / "all"), *counts, "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["rows"][0]["variants"]["all"]["verified"]


# It takes half a minute to several minutes for each.
@pytest.mark.vm
@pytest.mark.parametrize("stack", STACKS)
def test_each_patch_builds_and_adds_no_warning(stack: Sequence[str], kernel: Tree) -> None:
    """In one of the script's configurations; all of them take five minutes and more."""
    _judge(stack, kernel)


@pytest.mark.parametrize(("base", "stack"), PORTS)
def test_each_patch_of_a_port_builds_on_its_base(
    base: str, stack: Sequence[str], cache: Path, tmp_path: Path
) -> None:
    whole = [_whole(SERIES / one, tmp_path / str(at)) for at, one in enumerate(stack)]
    _judge(whole, fetch_tree(base_named(base), cache=cache, step=print))


def _whole(series: Path, folder: Path) -> str:
    """A folder with the patches of a series that may be a port, and what they configure."""
    folder.mkdir()
    for patch in load_series(series).patches:
        (folder / patch.name).write_bytes(patch.body)
        for name, text in patch.options:
            (folder / name).write_text(text)
    return str(folder)


@pytest.mark.vm
def test_where_pages_have_tags_nobody_copies_their_bytes_alone(kernel: Tree) -> None:
    """MTE of arm64 and ADI of sparc64: the script looks at what calls what."""
    _judge(MIGRATE, kernel, configs="arm64 sparc64")


WITH_AND_WITHOUT_XEN = "native xen"


@pytest.mark.vm
def test_distributions_kernels_have_what_spares_ptes_an_exchange(kernel: Tree) -> None:
    """XEN_PV selects PARAVIRT_XXL, in which other functions change PTEs."""
    _judge(("pte-hw-done", "mprotect"), kernel, configs=WITH_AND_WITHOUT_XEN)


@pytest.mark.vm
def test_what_is_compiled_out_with_paravirt_is_seen(kernel: Tree, tmp_path: Path) -> None:
    wrong = CHECKOUT / "tests/native/patches/settled-without-paravirt.patch"
    shutil.copy(wrong, tmp_path / "0001-wrong.patch")
    folders = [SERIES / "pte-hw-done", SERIES / "mprotect", tmp_path]
    judged = _checked(folders, kernel, WITH_AND_WITHOUT_XEN)
    assert judged.returncode == 1, judged.stdout + judged.stderr
    assert judged.stdout.count("\nok ") == 2
    why = "xen: arch/x86/kernel/paravirt.o: warning: exchanges PTEs that hardware cannot change"
    assert why in judged.stdout


def _judge(stack: Sequence[str], kernel: Tree, *, configs: str = "native") -> None:
    judged = _checked([SERIES / one for one in stack], kernel, configs)
    assert judged.returncode == 0, judged.stdout + judged.stderr
    patches = [patch for one in stack for patch in load_series(SERIES / one).patches]
    assert judged.stdout.count("\nok ") == len(patches)
    assert all(f"/{patch.name}\n" in judged.stdout for patch in patches)


def _checked(
    folders: Sequence[Path], kernel: Tree, configs: str
) -> subprocess.CompletedProcess[str]:
    if shutil.which("sparse") is None:
        if os.environ.get("CI"):
            pytest.fail("sparse: not installed; `make setup` as root installs it")
        pytest.skip("sparse is not installed")
    return subprocess.run(
        [CHECKOUT / "kernel/check-series.sh", kernel.path, *folders],
        env={**os.environ, "CONFIGS": configs},
        capture_output=True,
        text=True,
        check=False,
    )
