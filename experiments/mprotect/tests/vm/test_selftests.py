# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's own tests say the same of mprotect() and mremap() whichever series changes PTEs."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.guests import Builder
from ream.stage.qemu import GuestMachine
from ream.stage.selftests import SELFTESTS, differences, read_selftests, run_selftests
from without_keys import OF_KEYS, without_keys

MACHINE = GuestMachine("tcg", cpus=2, memory_bytes=4 << 30, cpu="max")
LIST = read_selftests(SELFTESTS / "mprotect.list")
CONFIG = "vm-pkeys"

DEBUG_S = 5400.0
"""A debug kernel, emulated, takes a quarter of an hour of a CPU's time."""

WRONG = Path(__file__).parents[2] / "wrong"

VARIANTS = {
    "published": ("mprotect-batch", "mremap-batch"),
    "hint": ("mprotect-batch", "mremap-batch", "mremap-hint"),
    "repaired": ("mprotect-batch", "mprotect-batch-inline"),
    "single": ("mprotect-batch", "mprotect-batch-single"),
    "ream": ("pte-hw-done", "mprotect", "mremap"),
}


@pytest.fixture(scope="module")
def on_base(image: Builder, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    work = tmp_path_factory.mktemp("base")
    built = image(config=CONFIG)
    return run_selftests(MACHINE, built, LIST, work=work, log=work / "console.log")


def test_the_guest_has_what_the_tests_look_at(on_base: Mapping[str, str]) -> None:
    assert sum(name.startswith("cow.") for name in on_base) > 300
    assert not any("pkey" in name and result == "skip" for name, result in on_base.items())


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_kernels_own_tests_give_the_same_results(
    variant: str, on_base: Mapping[str, str], image: Builder, tmp_path: Path
) -> None:
    built = image(*VARIANTS[variant], config=CONFIG)
    found = run_selftests(MACHINE, built, LIST, work=tmp_path, log=tmp_path / "console.log")
    assert differences(on_base, found, LIST) == ()


@pytest.mark.parametrize("variant", ["published", "repaired", "ream"])
def test_debug_kernels_have_nothing_to_say(
    variant: str, on_base: Mapping[str, str], image: Builder, tmp_path: Path
) -> None:
    """KASAN, lockdep and DEBUG_VM: any report of theirs fails the boot."""
    built = image(*VARIANTS[variant], config="vm-debug")
    rest = without_keys(LIST)
    log = tmp_path / "console.log"
    found = run_selftests(MACHINE, built, rest, work=tmp_path, log=log, deadline_s=DEBUG_S)
    assert "fail" not in found.values()
    # MADV_PAGEOUT is advice, and a kernel that holds on to more does not always take it.
    more = [name for name in found if (on_base[name], found[name]) == ("pass", "skip")]
    assert all("swapped out" in name for name in more)
    expected = {name for name in on_base if not name.startswith(OF_KEYS)}
    assert found.keys() == expected


def test_a_shared_page_that_becomes_writable_does_not_pass(
    on_base: Mapping[str, str], image: Builder, tmp_path: Path
) -> None:
    built = image(
        "pte-hw-done", "mprotect", str(WRONG / "03-shared-page-writable.patch"), config=CONFIG
    )
    cow = replace(LIST, programs=LIST.programs[:1])
    found = run_selftests(MACHINE, built, cow, work=tmp_path, log=tmp_path / "console.log")
    failed = {name for name, result in found.items() if result == "fail"}
    assert failed
    assert all(on_base[name] == "pass" for name in failed)
