# SPDX-License-Identifier: GPL-2.0-only
from pathlib import Path

import pytest

from ream.record.machine import (
    Conditions,
    Snapshot,
    conditions,
    read_machine,
    take_snapshot,
    timer_step_ns,
    warnings,
)

CPUINFO = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 106
model name\t: Example CPU @ 2.00GHz
stepping\t: 6
microcode\t: 0xd0003a5
flags\t\t: fpu erms fsrm avx512f hypervisor unknown_flag

processor\t: 1
model name\t: Another CPU
"""

FILES = {
    "proc/cpuinfo": CPUINFO,
    "proc/meminfo": "MemTotal:        8000000 kB\nMemFree: 1 kB\n",
    "proc/loadavg": "0.42 0.30 0.20 1/100 4242\n",
    "proc/stat": "cpu  100 0 50 800 10 0 0 40 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n",
    "proc/sys/kernel/osrelease": "6.12.0-example\n",
    "sys/devices/system/cpu/cpu0/cache/index0/level": "1\n",
    "sys/devices/system/cpu/cpu0/cache/index0/type": "Data\n",
    "sys/devices/system/cpu/cpu0/cache/index0/size": "48K\n",
    "sys/devices/system/cpu/cpu0/cache/index1/level": "1\n",
    "sys/devices/system/cpu/cpu0/cache/index1/type": "Instruction\n",
    "sys/devices/system/cpu/cpu0/cache/index1/size": "32K\n",
    "sys/devices/system/cpu/cpu0/cache/index3/level": "3\n",
    "sys/devices/system/cpu/cpu0/cache/index3/type": "Unified\n",
    "sys/devices/system/cpu/cpu0/cache/index3/size": "48M\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
    "sys/devices/system/cpu/smt/control": "off\n",
    "sys/devices/system/node/node0/cpulist": "0-1\n",
    "sys/devices/system/node/node0/meminfo": "Node 0 MemTotal:  4000000 kB\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]\n",
    "sys/fs/cgroup/cpu.max": "50000 100000\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path


def test_a_machine_is_read_from_its_own_files(root: Path) -> None:
    machine = read_machine(root)
    assert (machine.family, machine.model, machine.stepping) == (6, 106, 6)
    assert (machine.cpu, machine.microcode) == ("Example CPU @ 2.00GHz", "0xd0003a5")
    assert machine.flags == ("avx512f", "erms", "fsrm", "hypervisor")
    assert (machine.hypervisor, machine.thp, machine.smt) == (True, "never", "off")
    assert (machine.governor, machine.boost, machine.cpu_quota) == (
        "powersave",
        "off",
        "50000 100000",
    )
    assert machine.memory_bytes == 8_000_000 << 10
    assert [(node.number, node.cpus) for node in machine.nodes] == [(0, "0-1")]
    assert machine.nodes[0].memory_bytes == 4_000_000 << 10
    assert (machine.cache_bytes(1), machine.cache_bytes(2)) == (48 << 10, None)
    assert machine.cache_bytes(3) == 48 << 20
    assert machine.line().startswith("Example CPU @ 2.00GHz (family 6 model 106 stepping 6), ")
    assert machine.line().endswith("L3 48 MiB, 7.63 GiB RAM, virtual machine")


def test_what_cannot_be_read_is_none_not_zero(tmp_path: Path) -> None:
    machine = read_machine(tmp_path)
    for name in ("cpu", "family", "microcode", "memory_bytes", "thp", "hypervisor", "kernel"):
        assert getattr(machine, name) is None
    assert (machine.flags, machine.caches, machine.nodes) == ((), (), ())
    assert machine.line().startswith("unknown CPU, ")
    assert take_snapshot(tmp_path).ticks is None


def test_this_machine_can_be_read() -> None:
    assert read_machine().nr_cpus >= 1
    assert 0 < timer_step_ns() < 1_000_000


def test_steal_and_other_programs_worked_by_hand(root: Path) -> None:
    before = take_snapshot(root)
    assert before.ticks == (100, 0, 50, 800, 10, 0, 0, 40)
    assert before.load_1min == 0.42
    early = Snapshot(load_1min=0.42, ticks=(100, 0, 50, 800, 10, 0, 0, 40), own_ticks=20)
    late = Snapshot(load_1min=1.5, ticks=(150, 0, 60, 820, 10, 0, 0, 60), own_ticks=70)
    # 100 ticks: 50 user, 10 system, 20 idle, 20 steal; of the 60 busy ones 50 are ours.
    assert conditions(early, late) == Conditions(
        load_before=0.42, load_after=1.5, steal_pct=20.0, idle_pct=20.0, others_pct=10.0
    )


def test_counters_that_did_not_move_or_ran_backwards_say_nothing_wrong() -> None:
    early = Snapshot(load_1min=None, ticks=(1, 1, 1, 1, 9, 1, 1, 1), own_ticks=0)
    assert conditions(early, early).steal_pct is None
    late = Snapshot(load_1min=None, ticks=(11, 1, 1, 1, 5, 1, 1, 1), own_ticks=99)
    assert conditions(early, late).idle_pct == 0.0
    assert conditions(early, late).others_pct == 0.0
    unknown = Snapshot(load_1min=None, ticks=None, own_ticks=0)
    assert conditions(unknown, late).steal_pct is None


def test_a_warning_names_number_threshold_and_way_out(root: Path) -> None:
    during = Conditions(
        load_before=9.0, load_after=9.0, steal_pct=1.5, idle_pct=0.0, others_pct=12.0
    )
    said = warnings(read_machine(root), during)
    assert len(said) == 5
    assert "12 % of the CPU time (more than 5 %)" in said[0]
    assert "1.5 % of the CPU time for others (more than 1 %)" in said[1]
    assert "governor is powersave" in said[2]
    assert "cpu.max is '50000 100000'" in said[4]


def test_a_quiet_machine_gets_no_warning(tmp_path: Path) -> None:
    quiet = Conditions(
        load_before=0.0, load_after=1.0, steal_pct=1.0, idle_pct=40.0, others_pct=5.0
    )
    assert warnings(read_machine(tmp_path), quiet) == ()
