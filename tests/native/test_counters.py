# SPDX-License-Identifier: GPL-2.0-only
"""Counters beside the clock, tried with the events of software that every kernel has."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from ream.experiment import named
from ream.paths import NATIVE
from ream.progress import Reporter
from ream.report.table import render
from ream.session.request import Request
from ream.session.run import run_session
from ream.stage import counters
from ream.stage.link import COMPILER_FLAGS, host_headers
from ream.variants import choose_variants

HOST = NATIVE / "host"
PAGE_FAULTS = "1:2"
"""PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS of linux/perf_event.h."""
NO_EVENT = "0:ffff"
NR_PAGES = 64
USAGE = 2


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two spans, of which the second touches 64 pages in two threads."""
    built = tmp_path_factory.mktemp("counters") / "counters"
    sources = [Path(__file__).parent / "counters/main.c", HOST / "counters.c"]
    places = [f"-I{place}" for place in host_headers()]
    argv = ["gcc", *COMPILER_FLAGS, "-no-pie", "-pthread", *places, "-o", str(built)]
    subprocess.run([*argv, *map(str, sources)], check=True)
    return built


def spans(program: Path, *counters: str) -> tuple[dict[str, str], dict[str, dict[str, int]]]:
    """Which counters were refused, and what the others say of each span."""
    said = subprocess.check_output([program, *counters], text=True)
    lines = [json.loads(line) for line in said.splitlines()]
    refused = next((line["refused"] for line in lines if "refused" in line), {})
    return refused, {line["span"]: line for line in lines if "span" in line}


def test_threads_that_start_later_are_counted_too(program: Path) -> None:
    refused, said = spans(program, f"faults={PAGE_FAULTS}")
    assert not refused
    assert said["nothing"]["counter_faults"] < NR_PAGES
    assert said["pages"]["counter_faults"] - said["nothing"]["counter_faults"] >= NR_PAGES


def test_sources_of_one_name_are_added_up(program: Path) -> None:
    twice = (f"faults={PAGE_FAULTS}",) * 2
    _, once = spans(program, twice[0])
    _, both = spans(program, *twice)
    assert both["pages"]["counter_faults"] >= 2 * NR_PAGES
    assert both["pages"]["counter_faults"] > once["pages"]["counter_faults"]


def test_a_counter_that_is_refused_is_named_and_missing_and_the_others_count(
    program: Path,
) -> None:
    refused, said = spans(program, f"none={NO_EVENT}", f"faults={PAGE_FAULTS}")
    assert refused.keys() == {"none"}
    assert "counter_none" not in said["pages"]
    assert said["pages"]["counter_faults"] >= NR_PAGES


def test_a_counter_of_which_one_source_is_refused_is_missing(program: Path) -> None:
    refused, said = spans(program, f"faults={PAGE_FAULTS}", f"faults={NO_EVENT}")
    assert refused.keys() == {"faults"}
    assert "counter_faults" not in said["pages"]


def test_a_file_is_read_as_a_number_that_grows(program: Path, tmp_path: Path) -> None:
    (meter := tmp_path / "energy_uj").write_text("123\n")
    _, said = spans(program, f"energy=@{meter}:1000", f"lost=@{tmp_path / 'none'}")
    assert said["pages"]["counter_energy"] == 0
    assert "counter_lost" not in said["pages"]


@pytest.mark.parametrize("text", ["cycles", "=0:0", "cycles=0", "cycles=0:zz", "cycles=0:1:2:3"])
def test_what_is_no_counter_is_refused_by_name(program: Path, text: str) -> None:
    ran = subprocess.run([program, text], check=False, capture_output=True, text=True)
    assert ran.returncode == USAGE
    assert text in ran.stderr


def test_counters_of_samples_are_in_the_record_and_in_a_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path
) -> None:
    # Here they count page faults, since not every machine has counters of its CPU.
    faults = tuple(f"{name}={PAGE_FAULTS}" for name in ("cycles", "instructions"))
    monkeypatch.setattr(counters, "sources", lambda: faults)
    whole = named("null").at("native")
    outcome = run_session(
        Request(
            experiment=whole.single(whole.rows[1]).resized(launches=2, rounds=1),
            stage="native",
            variants=choose_variants(whole),
            tree=None,
            threads=1,
            seed=1,
            runs=tmp_path / "runs",
            cache=cache,
            command="ream run null",
        ),
        Reporter(),
    )
    (row,) = outcome.summary.rows
    for result in row.variants.values():
        assert isinstance(found := (result.columns or {})["counters"], Mapping)
        assert found.keys() == {"cycles", "instructions"}
    assert "Mcycles" in render(outcome.summary)
