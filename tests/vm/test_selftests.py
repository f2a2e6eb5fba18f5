# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's own tests give the same results with each shipped series as without."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.guests import Builder
from ream.stage.qemu import GuestMachine
from ream.stage.selftests import SELFTESTS, differences, read_selftests, run_selftests

MACHINE = GuestMachine("tcg", memory_bytes=6 << 30)

LIST = read_selftests(SELFTESTS / "zone-device.list")

SHIPPED = (("zone-device",), ("zone-device", "zone-device-parallel"))

BROKEN = Path(__file__).parent / "broken"
HURRIED = Path(__file__).parent / "hurried"

SLOW = "memcpy.memcpy_streaming_test"
"""A million copies."""


@pytest.fixture(scope="module")
def on_base(image: Builder, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    work = tmp_path_factory.mktemp("base")
    return run_selftests(MACHINE, image(), LIST, work=work, log=work / "console.log")


@pytest.mark.parametrize("series", SHIPPED, ids="+".join)
def test_a_series_passes_what_the_base_passes(
    series: Sequence[str], on_base: dict[str, str], image: Builder, tmp_path: Path
) -> None:
    built = image(*series)
    found = run_selftests(MACHINE, built, LIST, work=tmp_path, log=tmp_path / "console.log")
    assert differences(on_base, found, LIST) == ()
    assert sum(name.startswith("hmm") for name in found) == 58


def test_a_copy_that_forgets_its_tail_does_not_pass(image: Builder, tmp_path: Path) -> None:
    built = image("zone-device", modules=[BROKEN])
    kunit = replace(LIST, modules=("kunit", "memcpy_kunit"), programs=())
    found = run_selftests(MACHINE, built, kunit, work=tmp_path, log=tmp_path / "console.log")
    failed = {name for name, result in found.items() if result == "fail"}
    streaming = {name for name in found if name.startswith("memcpy.memcpy_streaming")}
    assert len(streaming) == 3
    assert failed == {"memcpy", *streaming}


@pytest.mark.parametrize(("modules", "result"), [((), "skip"), ((HURRIED,), "pass")])
def test_who_wants_no_slow_test_gets_none(
    modules: Sequence[Path], result: str, image: Builder, tmp_path: Path
) -> None:
    """What KUnit is told at boot; without the attribute the test runs all the same."""
    words = ("kunit.filter=speed>slow", "kunit.filter_action=skip")
    kunit = replace(LIST, modules=("kunit", "memcpy_kunit"), programs=(), words=words)
    built = image("zone-device", modules=modules)
    found = run_selftests(MACHINE, built, kunit, work=tmp_path, log=tmp_path / "console.log")
    assert found[SLOW] == result
    assert found["memcpy.memset_test"] == "pass"
