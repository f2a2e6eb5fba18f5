# SPDX-License-Identifier: GPL-2.0-only
"""The running kernel's own settings for the live tests, which leave them as they found them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from experiments.compact.live import PROACTIVE
from experiments.fork.programs import FORK_FOLIOS
from ream.settings import WAIT_S, Door, sole_door
from ream.stage.live import offered_kib, why_not
from ream.stage.workload import build_workload

TEST_BYTES = 64 << 20
THP = Path("/sys/kernel/mm/transparent_hugepage")


@pytest.fixture
def settings_now(tmp_path: Path) -> Callable[[], dict[str, str]]:
    """Every setting that runs change, by its path; counters are none, they cannot be written.

    Other tests run `fork`, which changes settings while it measures what natively is left out: read
    between two such measurements.
    """

    def read() -> dict[str, str]:
        files = (path for path in THP.rglob("*") if path.is_file() and path.stat().st_mode & 0o200)
        state = tmp_path / "not a journal's place"
        with sole_door(say=print, state=state, recover=False, wait_s=WAIT_S):
            found = (*files, *(path for path in (Path(PROACTIVE),) if path.exists()))
            return {str(path): path.read_text() for path in found}

    return read


@pytest.fixture
def settings_kept(settings_now: Callable[[], dict[str, str]]) -> Iterator[dict[str, str]]:
    """All settings as they were; the test fails if they differ after it, and they are put back."""
    if reason := why_not(64, TEST_BYTES):
        pytest.skip(f"folios of 64 KiB: {reason}")
    before = settings_now()
    yield before
    after = settings_now()
    for path in before:
        if after[path] != before[path]:
            Path(path).write_text(_value(before[path]))
    assert after == before


def _value(text: str) -> str:
    return text.partition("[")[2].partition("]")[0] or text.strip()


@pytest.fixture
def door(settings_kept: dict[str, str], tmp_path: Path) -> Iterator[Door]:
    assert settings_kept
    with sole_door(say=print, state=tmp_path / "state", wait_s=WAIT_S) as one:
        yield one


@pytest.fixture(scope="session")
def fork_folios(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_workload(FORK_FOLIOS, tmp_path_factory.mktemp("workload"))


@pytest.fixture
def offered() -> tuple[int, ...]:
    return offered_kib()
