# SPDX-License-Identifier: GPL-2.0-only
"""A real run, interrupted a hundred times: the machine's settings are always as they were."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ream.experiment import named
from ream.paths import CHECKOUT
from ream.session.restore import restore_settings
from ream.stage.hosted import programs_of
from ream.stage.workload import build_workload

pytestmark = pytest.mark.xdist_group("settings")

NR_INTERRUPTIONS = 100
LATEST_S = 0.15
"""A run comes round three to ten times in it, applying and putting back each time."""

RUNS = """
import os
import sys
from pathlib import Path
from ream.settings import WAIT_S, sole_door
from ream.stage.live import offered_kib, plan_settings
from ream.stage.workload import run_workload

program, work = sys.argv[1:]
starter = os.getpid()
argv = (program, "--folio-kib", "64", "--bytes", "4194304", "--ops", "fork,munmap")
for _ in sys.stdin:  # a line asks for a run, in a process of its own that has all it imports
    if not (pid := os.fork()):
        break
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
else:
    sys.exit()
with sole_door(say=lambda _: None, wait_s=WAIT_S) as door:
    print(os.getpid(), flush=True)
    while os.getppid() == starter:
        with door.applied(plan_settings(64, offered_kib())):
            run_workload(argv, Path(work), 60)
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the journal: a temporary one, since the user may need the real journal."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state/ream"


@pytest.fixture(scope="module")
def fork_folios(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workload of fork."""
    (program,) = programs_of(named("fork"))[0].programs
    return build_workload(program, tmp_path_factory.mktemp("workload"))


@pytest.fixture
def runs(fork_folios: Path, tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """What starts a run for every line; says its pid as it begins, its exit code as it ends."""
    with (
        (tmp_path / "said").open("w") as said,
        subprocess.Popen(
            [sys.executable, "-c", RUNS, str(fork_folios), str(tmp_path)],
            env={**os.environ, "PYTHONPATH": str(CHECKOUT / "lab")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        ) as process,
    ):
        yield process
        process.kill()


def interrupted(runs: "subprocess.Popen[str]", draw: random.Random) -> signal.Signals:
    """Send a run a signal at a random moment, perhaps another; wait for its end."""
    assert runs.stdin is not None
    assert runs.stdout is not None
    number = draw.choice((signal.SIGINT, signal.SIGTERM, signal.SIGKILL))
    print("another", file=runs.stdin, flush=True)
    pid = int(runs.stdout.readline())
    time.sleep(draw.uniform(0, LATEST_S))
    os.kill(pid, number)
    if draw.random() < 0.3:
        time.sleep(draw.uniform(0, 0.003))
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)
    # By its own signal between two rounds; in one, settings are put back before SystemExit.
    ended = (-signal.SIGINT, -signal.SIGTERM, 128 + signal.SIGTERM)
    expected = (-signal.SIGKILL,) if number == signal.SIGKILL else ended
    code = int(runs.stdout.readline())
    assert code in expected, f"{number.name} led to exit {code}"
    return number


def wait_until_gone(program: Path) -> None:
    ends_at = time.monotonic() + 60  # a busy machine takes its time to take back memory
    while any(_runs(entry, program) for entry in Path("/proc").iterdir()):
        assert time.monotonic() < ends_at, "the workload outlived its run"
        time.sleep(0.01)


def _runs(entry: Path, program: Path) -> bool:
    try:
        return entry.name.isdecimal() and (entry / "exe").readlink() == program
    except OSError:
        return False


@pytest.mark.vm
def test_a_hundred_interrupted_runs_leave_all_settings_as_they_were(
    settings_kept: dict[str, str],
    settings_now: Callable[[], dict[str, str]],
    runs: "subprocess.Popen[str]",
    fork_folios: Path,
    state: Path,
) -> None:
    draw = random.Random(7)
    seen: Counter[str] = Counter()
    for nr in range(NR_INTERRUPTIONS):
        number = interrupted(runs, draw)
        seen[number.name] += 1
        wait_until_gone(fork_folios)
        if number == signal.SIGKILL:
            seen["left changed"] += settings_now() != settings_kept
            said: list[str] = []
            assert restore_settings(said.append) == 0
            assert said
        assert settings_now() == settings_kept, f"interruption {nr} by {number.name}"
        assert not list(state.glob("*.json"))
    print(dict(seen))
    assert seen["left changed"] > seen["SIGKILL"] // 4, f"moments to no purpose: {dict(seen)}"


@pytest.mark.usefixtures("settings_kept")
def test_restoring_says_so_if_there_is_nothing_to_restore() -> None:
    said: list[str] = []
    assert restore_settings(said.append) == 0
    # Other tests may be changing settings: those are waited for.
    assert said[-1:] == ["no run left settings changed"]
    assert [line for line in said[:-1] if not line.startswith("waiting up to ")] == []
