# SPDX-License-Identifier: GPL-2.0-only
"""What a run met: looks at machines made of files, and what is said of them."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ream.errors import CannotRunHere
from ream.record import moment
from ream.record.machine import Conditions, Machine, read_machine, take_snapshot
from ream.record.moment import Looks, Moment, clocks_mhz, settings_now
from ream.record.noise import Noise, all_warnings, pause_s, sum_up, watch

THP = "sys/kernel/mm/transparent_hugepage"
CPU = "sys/devices/system/cpu"
PRESSURE = "some avg10=0.00 avg60=0.00 avg300=0.00 total={}\nfull avg10=0.00 total=0\n"

FILES = {
    "proc/loadavg": "0.42 0.30 0.20 1/100 4242\n",
    "proc/stat": "cpu  100 0 50 800 10 0 0 40 0 0\n",
    "proc/pressure/memory": PRESSURE.format(1000),
    "proc/sys/kernel/numa_balancing": "1\n",
    f"{THP}/enabled": "always [madvise] never\n",
    f"{THP}/defrag": "always defer defer+madvise [madvise] never\n",
    f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave\n",
    f"{CPU}/cpu0/cpufreq/scaling_cur_freq": "2100000\n",
    f"{CPU}/cpu1/cpufreq/scaling_cur_freq": "3400000\n",
    f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "3\n",
    f"{CPU}/cpu1/thermal_throttle/core_throttle_count": "4\n",
    f"{CPU}/intel_pstate/no_turbo": "0\n",
    f"{CPU.replace('cpu', 'node')}/node0/cpulist": "0\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        write(tmp_path, name, content)
    return tmp_path


def write(root: Path, name: str, content: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Monotonic, wall and boot time, for a test to set."""
    now = {"monotonic_s": 100.0, "wall_s": 5000.0, "boot_s": 120.0}
    monkeypatch.setattr(moment, "_clocks", lambda: moment._Clocks(**now))
    return now


def pass_time(clocks: dict[str, float], seconds: float) -> None:
    for name in clocks:
        clocks[name] += seconds


def test_a_look_says_what_the_machine_does(root: Path, clocks: dict[str, float]) -> None:
    looks = Looks(root, cpus=(0, 1))
    first = looks.moment()
    assert (first.t_s, first.load, first.steal_pct) == (0.0, 0.42, None)
    assert (first.mhz_low, first.mhz_high) == (2100.0, 3400.0)
    assert (first.thp, first.thp_defrag, first.numa_balancing) == ("madvise", "madvise", "1")
    assert (first.governor, first.boost, first.throttled) == ("powersave", "on", 7)

    pass_time(clocks, 2.0)
    # 1000 ticks: 500 of steal, 400 idle, 100 user, of which we can have used next to none.
    write(root, "proc/stat", "cpu  200 0 50 1200 10 0 0 540 0 0\n")
    write(root, "proc/pressure/memory", PRESSURE.format(501_000))
    second = looks.moment()
    assert (second.t_s, second.steal_pct, second.idle_pct) == (2.0, 50.0, 40.0)
    assert second.memory_pressure_pct == 25.0  # half a second of two
    assert second.io_pressure_pct is None


def test_two_looks_too_close_make_no_share_and_lose_no_time(
    root: Path, clocks: dict[str, float]
) -> None:
    looks = Looks(root, cpus=(0,))
    looks.moment()
    pass_time(clocks, 0.1)
    write(root, "proc/stat", "cpu  100 0 50 800 10 0 0 140 0 0\n")
    assert looks.moment().steal_pct is None
    pass_time(clocks, 0.9)
    write(root, "proc/stat", "cpu  100 0 50 900 10 0 0 140 0 0\n")
    assert looks.moment().steal_pct == 50.0  # of both stretches together


def test_a_machine_that_says_nothing_makes_a_look_of_nulls(tmp_path: Path) -> None:
    lines: list[str] = []
    with watch(lines.append, root=tmp_path, period_s=60) as watching:
        pass
    for line in lines:
        said = json.loads(line)
        known = {name for name, value in said.items() if value is not None}
        assert known == {"t_s", "wall_offset_s", "slept_s", "cost_us"}
    noise = watching.during()
    assert (noise.nr_moments, noise.steal_mean_pct, noise.changes) == (0, None, ())
    assert noise.warnings(read_machine(tmp_path)) == ()


@settings(max_examples=50)
@given(text=st.text(max_size=80) | st.text("0123456789.", min_size=400), data=st.data())
def test_no_file_can_make_a_look_fail(
    tmp_path_factory: pytest.TempPathFactory, text: str, data: st.DataObject
) -> None:
    root = tmp_path_factory.mktemp("root")
    for name, content in FILES.items():
        cut = data.draw(st.integers(0, len(content)))
        write(root, name, content[:cut] + text)
    looks = Looks(root, cpus=(0, 1))
    assert sum_up([looks.moment(), looks.moment()]).duration_s >= 0


def test_the_clock_comes_from_cpuinfo_where_sysfs_has_none(tmp_path: Path) -> None:
    write(tmp_path, "proc/cpuinfo", "cpu MHz\t\t: 2445.424\n\ncpu MHz\t\t: 0.000\n")
    assert clocks_mhz(tmp_path, (0, 1)) == [2445.424]


def test_this_machine_is_looked_at_again_and_again() -> None:
    lines: list[str] = []
    names: set[str] = set()

    def note(line: str) -> None:
        names.add(threading.current_thread().name)
        lines.append(line)

    with watch(note, period_s=0.05) as watching:
        deadline = time.monotonic() + 60
        while len(lines) < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        nr_before = len(lines)
        assert watching.during().duration_s > 0
        assert len(lines) > nr_before  # it looks before it says
    times = [Moment.model_validate_json(line).t_s for line in lines]
    assert times == sorted(times)
    assert "noise" in names
    assert watching.during().duration_s == pytest.approx(times[-1] - times[0], abs=0.002)
    assert not any(thread.name == "noise" for thread in threading.enumerate())


def test_the_looks_of_a_run_that_is_resumed_follow_those_there_are(
    root: Path, clocks: dict[str, float]
) -> None:
    lines: list[str] = []
    with watch(lines.append, root=root, period_s=60, begins_s=16.0) as watching:
        pass_time(clocks, 3.0)
        before = watching.during(since=102.0)
        pass_time(clocks, 1.0)
    assert [Moment.model_validate_json(line).t_s for line in lines] == [16.0, 19.0, 20.0]
    assert before.duration_s == 3.0
    assert watching.during(since=103.5).duration_s == 1.0
    assert watching.during(since=199.0).duration_s == 0.0


def test_a_look_takes_little_of_a_cpu() -> None:
    # Against the same work of the same interpreter, not a clock: 200 files are a lot more.
    looks = Looks(Path("/"))
    looks.moment()
    before = time.thread_time()
    for _ in range(20):
        looks.moment()
    a_look = (time.thread_time() - before) / 20
    before = time.thread_time()
    for _ in range(1000):
        Path("/proc/self/stat").read_text()
    assert a_look < time.thread_time() - before


@pytest.mark.parametrize(("cost_us", "expected"), [(0, 2.0), (3000, 2.0), (30_000, 6.0)])
def test_where_a_look_takes_long_there_are_fewer(cost_us: float, expected: float) -> None:
    assert pause_s(2.0, cost_us) == pytest.approx(expected)


@pytest.mark.parametrize("fault", [OSError(28, "full"), ValueError("closed"), CannotRunHere("no")])
def test_a_look_that_cannot_be_written_is_still_summed_up(root: Path, fault: Exception) -> None:
    def write_nothing(_line: str) -> None:
        raise fault

    with watch(write_nothing, root=root, period_s=60) as watching:
        pass
    assert watching.during().load_max == 0.42


def test_a_run_that_fails_is_not_looked_at_any_more(root: Path) -> None:
    with pytest.raises(CannotRunHere, match="as it was"):  # noqa: SIM117
        with watch(lambda _: None, root=root, period_s=0.01):
            raise CannotRunHere("as it was")
    assert not any(thread.name == "noise" for thread in threading.enumerate())


def test_what_a_living_child_uses_is_ours() -> None:
    before = take_snapshot()
    busy = "import os\nwhile sum(os.times()[:2]) < 0.5: pass\nprint(flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", busy], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        living = take_snapshot().own_ticks - before.own_ticks
        child.communicate(b"\n")
    ended = take_snapshot().own_ticks - before.own_ticks
    half_a_second = os.sysconf("SC_CLK_TCK") // 2
    assert living >= half_a_second - 2
    assert ended >= living - 1


def test_what_ream_itself_changed_is_no_change(root: Path, tmp_path: Path) -> None:
    journal = tmp_path / "settings.json"
    entry = {"path": f"/{THP}/enabled", "old": "madvise", "new": "never"}
    journal.write_text(
        json.dumps({"schema": 1, "boot_id": "", "pid": 1, "started": 1, "entries": [entry]})
    )
    write(root, f"{THP}/enabled", "always madvise [never]\n")
    assert settings_now(root, journal)["thp"] == "madvise"
    write(root, f"{THP}/enabled", "[always] madvise never\n")  # not ours: set by another program
    assert settings_now(root, journal)["thp"] == "always"
    journal.write_text("damaged")
    assert settings_now(root, journal)["thp"] == "always"


def at(t_s: float, **said: object) -> Moment:
    return Moment.model_validate({"t_s": t_s, "load": 1.0, **said})


def machine(tmp_path: Path, nodes: int = 1) -> Machine:
    for number in range(nodes):
        write(tmp_path, f"sys/devices/system/node/node{number}/cpulist", f"{number}\n")
    return read_machine(tmp_path)


def test_moments_are_summed_up_by_hand() -> None:
    noise = sum_up(
        [
            at(0.0, mhz_low=900, mhz_high=3000, throttled=5, numa_balancing="1", cost_us=10),
            at(2.0, steal_pct=12, others_pct=1, mhz_low=800, mhz_high=3300, throttled=5),
            at(4.0, steal_pct=0, others_pct=2, mhz_low=850, mhz_high=3150, throttled=9),
            at(6.5, steal_pct=3, others_pct=30),
        ]
    )
    assert (noise.duration_s, noise.nr_moments, noise.cost_us) == (6.5, 3, 2.5)
    assert (noise.steal_mean_pct, noise.steal_max_pct, noise.nr_steal_bursts) == (5, 12, 1)
    assert (noise.others_mean_pct, noise.others_max_pct, noise.nr_others_bursts) == (11, 30, 1)
    assert (noise.mhz_low, noise.mhz_high) == (800, 3300)
    assert (noise.fastest_low, noise.fastest_high) == (3000, 3300)
    assert noise.clock_moved_pct == pytest.approx(10)
    assert noise.throttled == 4


def test_looks_before_the_measuring_are_left_out() -> None:
    moments = [
        at(0.0, thp="always"),
        at(2.0, steal_pct=90, thp="always"),
        at(4.0, steal_pct=1, thp="never"),
        at(6.0, steal_pct=3, thp="never"),
    ]
    noise = sum_up(moments, after_s=3.0)
    # Of the look that spans the start, too: it is the first that tells anything of it.
    assert (noise.duration_s, noise.steal_mean_pct) == (4.0, 2.0)
    assert sum_up(moments, after_s=4.0).changes == ()
    assert sum_up(moments, after_s=99.0).nr_moments == 0


def test_a_setting_that_changes_is_told_with_its_time(tmp_path: Path) -> None:
    noise = sum_up(
        [
            at(0.0, thp="madvise", governor="performance"),
            at(2.0, thp="madvise", governor="powersave"),
            at(4.0, thp="never", governor="powersave"),
        ]
    )
    first, second = noise.warnings(machine(tmp_path))
    assert first == (
        "somebody changed governor from performance to powersave 2 s after the start: samples "
        "before and after are of two machines; run again and leave it"
    )
    assert second.startswith("somebody changed thp from madvise to never 4 s after the start: ")


def noise_of(**said: object) -> Noise:
    quiet = sum_up([at(0.0), at(2.0)])
    return Noise.model_validate({**quiet.model_dump(), **said})


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"nr_moments": 20, "nr_steal_bursts": 2}, "the hypervisor took more than 10 % of the CPU"),
        ({"nr_moments": 20, "nr_steal_bursts": 2}, "in 2 of 20 looks (more than 5 % of them)"),
        ({"nr_moments": 20, "nr_others_bursts": 3}, "other programs used more than 10 %"),
        (
            {"fastest_low": 2000.0, "fastest_high": 3000.0},
            "moved between 2000 and 3000 MHz (50 %, more than 10 %): `cpupower",
        ),
        ({"throttled": 2}, "slowed themselves down for heat 2 times"),
        ({"wall_jump_s": 3.25}, "the wall clock went 3.2 s (more than 1 s) from the monotonic"),
        ({"slept_s": 60.0, "wall_jump_s": 60.0}, "the machine slept for 60 s (more than 1 s)"),
        ({"numa_balancing": "1"}, "NUMA balancing is 1 (more than 0) on 2 nodes"),
    ],
)
def test_each_kind_of_noise_says_number_threshold_and_way_out(
    tmp_path: Path, said: dict[str, object], expected: str
) -> None:
    (only,) = noise_of(**said).warnings(machine(tmp_path, nodes=2))
    assert expected in only


@pytest.mark.parametrize(
    "said",
    [
        {"nr_moments": 20, "nr_steal_bursts": 1},  # a median stands it
        {"nr_moments": 20, "nr_others_bursts": 19},  # no burst: the mean tells of it
        {"fastest_low": 3000.0, "fastest_high": 3299.0},
        {"wall_jump_s": 1.0, "throttled": 0, "numa_balancing": "0"},
    ],
)
def test_a_quiet_run_gets_no_warning(tmp_path: Path, said: dict[str, object]) -> None:
    assert noise_of(**said).warnings(machine(tmp_path, nodes=2)) == ()


def test_numa_balancing_does_nothing_on_one_node(tmp_path: Path) -> None:
    assert noise_of(numa_balancing="1").warnings(machine(tmp_path)) == ()


def test_a_clock_that_jumps_and_a_machine_that_sleeps_are_noticed(
    root: Path, clocks: dict[str, float]
) -> None:
    looks = Looks(root, cpus=(0,))
    seen = [looks.moment()]
    pass_time(clocks, 2.0)
    clocks["wall_s"] -= 3600  # the clock was set back
    seen.append(looks.moment())
    assert (sum_up(seen).wall_jump_s, sum_up(seen).slept_s) == (3600, 0)
    clocks["wall_s"] += 3600 + 30  # set right again; then it slept
    clocks["boot_s"] += 30
    pass_time(clocks, 2.0)
    seen.append(looks.moment())
    assert (sum_up(seen).wall_jump_s, sum_up(seen).slept_s) == (3630, 30)


def test_the_warnings_of_a_machine_include_those_of_its_noise(tmp_path: Path) -> None:
    quiet = Conditions(load_before=0, load_after=0, steal_pct=0, idle_pct=50, others_pct=0)
    said = all_warnings(machine(tmp_path), quiet, noise_of(throttled=2))
    assert len(said) == 1
    assert all_warnings(machine(tmp_path), quiet, None) == ()
