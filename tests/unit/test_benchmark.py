# SPDX-License-Identifier: GPL-2.0-only
"""A benchmark's id is of what ends up in what is run: all of it, and nothing else."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ream.experiment import named
from ream.folders import names
from ream.paths import CHECKOUT, GUEST
from ream.session.benchmark import benchmark_files, benchmark_id
from ream.stage import initramfs, link, workload
from ream.stage.hosted import programs_of

CHANGES_EACH = """\
import sys
from ream.experiment import named
from ream.paths import CHECKOUT
from ream.session import benchmark
from ream.session.benchmark import benchmark_files, benchmark_id

for words in sys.argv[1:]:
    name, stage, *unrelated = words.split(",")
    experiment = named(name)
    benchmark.benchmark_files = benchmark_files
    was = benchmark_id(experiment, stage)
    files = benchmark_files(experiment, stage)
    # A line at the end of a file includes nothing: which files there are is not asked for each.
    benchmark.benchmark_files = lambda *_, **__: files
    others = {CHECKOUT / name for name in unrelated}
    assert files and others and all(path.is_file() for path in others), others
    for path in sorted(files | others):
        held = path.read_bytes()
        path.write_bytes(held + b"\\n")
        changed = benchmark_id(experiment, stage) != was
        path.write_bytes(held)
        assert changed == (path in files), (name, stage, path)
    assert benchmark_id(experiment, stage) == was
"""


def test_each_file_that_is_run_changes_the_id_and_no_other_does(tmp_path: Path) -> None:
    for name in ("lab", "native", "guest", "workloads", "kernel", "experiments"):
        shutil.copytree(CHECKOUT / name, tmp_path / name)
    words = (
        "migrate,native,experiments/compact/workloads/hog.c,guest/init.c,experiments/fork/native/runner.c,kernel/config/vm.config",
        "fork,native,kernel/modules/swdma/swdma.c,experiments/migrate/native/facts.h",
        "zone-device,native,experiments/fork/native/facts.h,native/host/optional/srcu.c",
        "fork,vm,experiments/compact/workloads/hog.c,kernel/modules/swdma/swdma.c,guest/probe.S",
        "compact,vm,experiments/compact/workloads/compact_thp.c,kernel/modules/memremap/memremap.c",
        "zone-device,vm,experiments/fork/workloads/fork_folios.c,kernel/modules/order9/order9.c",
        "migrate,live,experiments/fork/workloads/fork_folios.c,guest/init.c",
    )
    subprocess.run(
        [sys.executable, "-c", CHANGES_EACH, *words],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "lab")},
        check=True,
        timeout=300,
    )


def project_files(sources: list[Path], *flags: str) -> set[Path]:
    """What gcc reads of the project to compile these."""
    said = subprocess.run(
        ["gcc", "-MM", *flags, *map(str, sources)], capture_output=True, text=True, check=True
    ).stdout
    words = said.replace("\\\n", " ").split()
    return {Path(word).resolve() for word in words if not word.endswith(":")}


@pytest.mark.parametrize("experiment", [one for one in names() if named(one).has("native")])
def test_the_compiler_reads_no_file_for_the_program_that_the_id_lacks(experiment: str) -> None:
    for folder in (one.folder for one in programs_of(named(experiment))):
        headers = (f"-I{home}" for home in (*link.host_headers(), folder))
        read = project_files(link.host_sources(folder), *headers)
        assert read <= benchmark_files(named(experiment), "native")
        assert read <= {path.resolve() for path in link.host_files(folder)}


@pytest.mark.parametrize("experiment", ["fork", "migrate", "compact"])
def test_the_compiler_reads_no_file_for_a_guest_that_the_id_lacks(experiment: str) -> None:
    files = benchmark_files(named(experiment), "vm")
    assert project_files(initramfs.init_sources(named(experiment).folder), f"-I{GUEST}") <= files
    sources = [path for path in files if path.parent.name == "workloads" and path.suffix == ".c"]
    assert project_files(sources, *workload.HEADERS) <= files


def test_flags_of_the_compiler_are_part_of_the_id(monkeypatch: pytest.MonkeyPatch) -> None:
    fork = named("fork")
    was = benchmark_id(fork, "native"), benchmark_id(fork, "live")
    monkeypatch.setattr("ream.session.benchmark.COMPILER_FLAGS", ("-O3",))
    monkeypatch.setattr("ream.stage.workload.FLAGS", ("-O3",))
    assert benchmark_id(fork, "native") != was[0]
    assert benchmark_id(fork, "live") != was[1]
