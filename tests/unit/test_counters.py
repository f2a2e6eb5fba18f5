# SPDX-License-Identifier: GPL-2.0-only
"""What of a machine is counted beside time, found in recorded files of sysfs."""

from pathlib import Path

import pytest

from ream.experiment import named
from ream.experiment.columns import Columns
from ream.experiment.counters import MEANS, SHOWN, with_counters
from ream.measure.sample import Sample
from ream.report.columns import columns_of
from ream.stage import counters

PMUS = "sys/bus/event_source/devices"
IMC = {
    "type": "14\n",
    "cpumask": "0,28\n",
    "events/cas_count_read": "event=0x04,umask=0x03\n",
    "events/cas_count_write": "event=0x04,umask=0x0c\n",
    "format/event": "config:0-7\n",
    "format/umask": "config:8-15\n",
}
"""Files in sysfs of a memory controller of an Intel server with two sockets."""
UMC = {
    "type": "24\n",
    "cpumask": "0\n",
    "format/event": "config:0-7\n",
    "format/rdwrmask": "config:8-9\n",
}
"""Files in sysfs of a memory controller of an AMD server (Zen 4)."""
PACKAGE = {"name": "package-0\n", "energy_uj": "1234\n", "max_energy_range_uj": "65532610987\n"}


def laid(root: Path, folder: str, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_every_machine_is_asked_for_what_its_cpus_count(tmp_path: Path) -> None:
    assert counters.sources(tmp_path) == (
        "cycles=0:0",
        "instructions=0:1",
        "cache_misses=0:3",
        "tlb_misses=3:10003",
    )


def test_a_memory_controller_is_read_on_one_cpu_of_each_socket(tmp_path: Path) -> None:
    found = counters.sources(laid(tmp_path, f"{PMUS}/uncore_imc_0", IMC))
    assert found[4:] == (
        "dram_reads=14:304:0",
        "dram_reads=14:304:28",
        "dram_writes=14:c04:0",
        "dram_writes=14:c04:28",
    )


def test_terms_are_placed_where_the_format_says(tmp_path: Path) -> None:
    found = counters.sources(laid(tmp_path, f"{PMUS}/amd_umc_3", UMC))
    assert found[4:] == ("dram_reads=24:10a:0", "dram_writes=24:20a:0")


def test_a_term_may_lie_in_several_pieces(tmp_path: Path) -> None:
    split = UMC | {"format/event": "config:0-2,32-36\n"}
    found = counters.sources(laid(tmp_path, f"{PMUS}/amd_umc_0", split))
    assert found[4] == f"dram_reads=24:{0b010 | (1 << 32) | (1 << 8):x}:0"


def test_a_controller_of_another_generation_is_no_counter(tmp_path: Path) -> None:
    older = {name: text for name, text in IMC.items() if "cas_count" not in name}
    assert len(counters.sources(laid(tmp_path, f"{PMUS}/uncore_imc_0", older))) == 4


def test_energy_is_that_of_packages_and_begins_again_behind_its_range(tmp_path: Path) -> None:
    laid(tmp_path, "sys/class/powercap/intel-rapl:0", PACKAGE)
    laid(tmp_path, "sys/class/powercap/intel-rapl:0:0", PACKAGE | {"name": "core\n"})
    path = tmp_path / "sys/class/powercap/intel-rapl:0/energy_uj"
    assert counters.sources(tmp_path)[4:] == (f"energy_uj=@{path}:65532610987",)


def test_a_machine_without_counters_says_so(tmp_path: Path) -> None:
    assert "virtual machines" in (counters.why_none(tmp_path) or "")
    (tmp_path / PMUS / "cpu").mkdir(parents=True)
    assert counters.why_none(tmp_path) is None
    laid(tmp_path, "proc/sys/kernel", {"perf_event_paranoid": "4\n"})
    assert "perf_event_paranoid" in (counters.why_none(tmp_path) or "")


def sample(**beside: int) -> Sample:
    return Sample("row", 0, 0, "variant", "ream", 1, 100, 4096, verified=True, beside=beside)


def test_what_is_not_counted_is_unknown_and_never_0() -> None:
    declared = with_counters(Columns())
    assert columns_of(declared, [sample()], "ream", to="before") is None
    its = columns_of(declared, [sample(counter_cycles=8)], "ream", to="before")
    assert its is not None
    assert its["counters"] == {"cycles": 8}


def test_the_table_shows_instructions_per_cycle_and_bytes_of_memory() -> None:
    numbers = {
        "median": 100.0,
        "nr_bytes": 4096.0,
        "counters.cycles": 4e6,
        "counters.instructions": 6e6,
        "counters.dram_reads": 1e6,
    }
    shown = {cell.head: cell.here(numbers) for cell in SHOWN.cells}
    assert (shown["IPC"], shown["read MB"], shown["J"]) == (1.5, 64.0, None)


@pytest.mark.parametrize("name", MEANS)
def test_every_experiment_has_the_machines_counters(name: str) -> None:
    assert f"counters.{name}" in {one.name for one in named("fork").all_columns.columns}
