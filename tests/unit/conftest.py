# SPDX-License-Identifier: GPL-2.0-only
"""Made-up runs whose truth is known, for the tests of statistics, summary and reports."""

import math
import random
from collections.abc import Callable, Mapping

import hypothesis
import pytest

from ream.experiment import BYTES_PER_PAGE, Row
from ream.measure.sample import Sample
from ream.record.machine import Cache, Conditions, Machine, Node
from ream.record.receipt import BuiltKernel, PatchEntry, Ream, Receipt, SeriesEntry, Settings

# A shared machine stalls for longer than any deadline: that is not the code's fault.
hypothesis.settings.register_profile("ream", deadline=None)
hypothesis.settings.load_profile("ream")

Simulated = Callable[..., list[Sample]]


@pytest.fixture(scope="session")
def simulated() -> Simulated:
    """The function below, as a fixture: test files do not import each other."""
    return _simulated


def _simulated(
    row: Row,
    truth_ns_per_page: Mapping[str, float],
    fills_ns_per_page: Mapping[tuple[str, int], float],
    *,
    launches: int = 8,
    seed: int = 1,
    launch_sd: float = 0.02,
    round_sd: float = 0.01,
    threads: Mapping[str, int] | None = None,
) -> list[Sample]:
    """Samples of one row: each subject has its own effect in each launch, as layout gives it.

    The spreads are standard deviations of logarithms.
    """
    draw = random.Random(seed)
    samples = []
    nr_pages = row.written_bytes // BYTES_PER_PAGE[row.bytes_of]
    for launch in range(launches):
        layout = {name: draw.gauss(0, launch_sd) for name in truth_ns_per_page}
        for number in range(row.rounds):
            weather = draw.gauss(0, round_sd)
            for name, truth in truth_ns_per_page.items():
                factor = math.exp(layout[name] + weather + draw.gauss(0, round_sd))
                samples.append(
                    Sample(
                        row=row.name,
                        launch=launch,
                        round=number,
                        role="variant",
                        subject=name,
                        threads=(threads or {}).get(name, 1),
                        time_ns=round(nr_pages * truth * factor),
                        nr_bytes=row.written_bytes,
                        verified=True,
                    )
                )
            for (how, nr_threads), truth in fills_ns_per_page.items():
                factor = math.exp(weather + draw.gauss(0, round_sd))
                samples.append(
                    Sample(
                        row=row.name,
                        launch=launch,
                        round=number,
                        role="limit",
                        subject=how,
                        threads=nr_threads,
                        time_ns=round(nr_pages * truth * factor),
                        nr_bytes=row.written_bytes,
                        verified=True,
                    )
                )
    return samples


MACHINE = Machine(
    cpu="Example CPU @ 2.00GHz",
    family=6,
    model=106,
    stepping=6,
    microcode="0xd0003a5",
    flags=("avx512f", "clwb", "erms", "hypervisor"),
    caches=(
        Cache(level=1, type="Data", size_bytes=48 << 10, line_bytes=64, shared_by="0"),
        Cache(level=1, type="Instruction", size_bytes=32 << 10, line_bytes=64, shared_by="0"),
        Cache(level=2, type="Unified", size_bytes=1280 << 10, line_bytes=64, shared_by="0"),
        Cache(level=3, type="Unified", size_bytes=48 << 20, line_bytes=64, shared_by="0-1"),
    ),
    nodes=(Node(number=0, cpus="0-1", memory_bytes=8 << 30),),
    nr_cpus=2,
    nr_usable_cpus=2,
    cpu_quota=None,
    smt="notsupported",
    governor=None,
    boost=None,
    memory_bytes=8 << 30,
    thp="madvise",
    thp_defrag="madvise",
    hypervisor=True,
    kernel="6.12.0",
    clock_source="tsc",
    timer_step_ns=30,
)

RECEIPT = Receipt(
    machine=MACHINE,
    conditions=Conditions(
        load_before=0.42, load_after=1.01, steal_pct=0.3, idle_pct=40.0, others_pct=1.2
    ),
    kernel=BuiltKernel(
        tree="linux-source-6.12 6.12.117-1~deb12u1",
        tree_key="0123456789abcdef" * 4,
        version="6.12.117",
        compiler="gcc (Debian 12.2.0-14+deb12u1) 12.2.0",
        config_sha256="fedcba9876543210" * 4,
        variants={
            "before": (),
            "published": (
                SeriesEntry(
                    name="zone-device",
                    id="aa" * 32,
                    patches=(
                        PatchEntry(name="0001-a.patch", subject="mm: a", sha256="11" * 32),
                        PatchEntry(name="0002-b.patch", subject="mm: b", sha256="22" * 32),
                    ),
                ),
            ),
        },
    ),
    ream=Ream(version="0.1.0", commit="c0ffee" * 6 + "c0ff", dirty=False),
    settings=Settings(
        command="./ream run zone-device --seed 42", seed=42, launches=8, rounds={"fsdax-100GB": 2}
    ),
    warnings=(),
)
"""A receipt of a machine that does not exist."""


@pytest.fixture(scope="session")
def receipt() -> Receipt:
    return RECEIPT
