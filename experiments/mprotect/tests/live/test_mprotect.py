# SPDX-License-Identifier: GPL-2.0-only
"""mprotect() on the running kernel, small: every kind of memory, and every way to be wrong."""

import os
import subprocess
from pathlib import Path

import pytest

from experiments.mprotect.jobs import Job, sample_said, settings_of, visited, why_not_job
from experiments.mprotect.programs import MPROTECT_FOLIOS
from experiments.mprotect.rows import MprotectRow
from experiments.mprotect.toggles import job_of
from ream.command import run
from ream.errors import CannotRunHere, VerificationFailed
from ream.settings import Door
from ream.stage.live import Visits, operations
from ream.stage.workload import HEADERS, build_workload, compile_command, run_workload

pytestmark = pytest.mark.xdist_group("settings")

DEADLINE_S = 120.0
HERE = Path(__file__).parent


def job(**fields: object) -> Job:
    whole = {"folio_bytes": "4k", "operation": "rw-to-r", "call_bytes": "1MiB", **fields}
    return job_of(MprotectRow.model_validate({"name": "r", "stage": "live", "rounds": 1, **whole}))


def words(program: Path, one: Job) -> tuple[str, ...]:
    return (str(program), "--run", one.name, *one.words)


@pytest.fixture(scope="module")
def mprotect_folios(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_workload(MPROTECT_FOLIOS, tmp_path_factory.mktemp("workload"))


@pytest.mark.parametrize("operation", ["rw-to-r", "rw-to-none"])
@pytest.mark.parametrize(
    "fields",
    [
        *({"folio_bytes": size, "memory": memory}
          for size in ("4k", "16k", "64k", "2m") for memory in ("private", "shared")),
        {"call_bytes": "4KiB"},
        {"call_bytes": "40KiB", "memory": "shared"},
        {"folio_bytes": "64k", "every": 2},
        {"every": 3, "memory": "shared"},
        {"frames": "scattered", "pre_state": "cold"},
    ],
)  # fmt: skip
def test_protection_is_changed_and_restored(
    door: Door, mprotect_folios: Path, tmp_path: Path, fields: dict[str, object], operation: str
) -> None:
    one = job(operation=operation, **fields)
    if reason := why_not_job(one):
        pytest.skip(reason)
    with door.applied(settings_of(one)):
        said = run_workload(words(mprotect_folios, one), tmp_path, DEADLINE_S)
    samples = [sample_said(its, launch=0, number=0) for its in operations(said)]
    assert [sample.op for sample in samples] == list(one.ops)
    for sample in samples:
        assert sample.time_ns > 0
        assert (sample.run, sample.folio_kib, sample.verified) == (one.name, one.folio_kib, True)
    # Memory is this process's own, and was written: a page is writable again without a fault.
    assert samples[1].write_faults == 0


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (1, "page 255 can be written after PROT_READ"),
        (2, "page 0 cannot be read after PROT_READ"),
        (3, "page 255 holds other contents after PROT_READ"),
        (4, "after PROT_READ smaps says 1020 KiB mapped"),
    ],
)
def test_a_change_that_is_wrong_is_noticed(tmp_path: Path, wrong: int, complaint: str) -> None:
    program = tmp_path / "wrong"
    sources = (*MPROTECT_FOLIOS.sources, HERE / "wrong.c")
    options = (*HEADERS, *map(str, sources), f"-DWRONG={wrong}", "-Wl,--wrap=mprotect")
    run(compile_command(program, *options, work=tmp_path, arch=None))
    with pytest.raises(VerificationFailed, match=complaint):
        run_workload(words(program, job()), tmp_path, DEADLINE_S)


def test_shared_folios_that_are_switched_off_cannot_be_had(
    door: Door, mprotect_folios: Path, tmp_path: Path
) -> None:
    one = job(folio_bytes="64k", memory="shared")
    if reason := why_not_job(one):
        pytest.skip(reason)
    with (
        pytest.raises(CannotRunHere, match="shared folios of 64 KiB: 0 of 32 good"),
        door.applied(settings_of(job(folio_bytes="4k", memory="shared"))),
    ):
        run_workload(words(mprotect_folios, one), tmp_path, DEADLINE_S)


def test_single_pages_need_no_root_and_no_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert settings_of(job(memory="shared")) == ()
    assert "only root" in str(why_not_job(job(folio_bytes="64k")))
    visits = Visits(2, seed=1, work=tmp_path, step=print)
    said = [sample for _, sample in visited(MPROTECT_FOLIOS, [job()], visits)]
    assert [(one.launch, one.op) for one in said] == [
        (0, "rw-to-r"), (0, "r-to-rw"), (1, "rw-to-r"), (1, "r-to-rw"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ((), "--folio-kib K: missing"),
        (("--call-bytes", "100"), "not a multiple of 4096"),
        (("--to", "rx"), "--to rx: none or r"),
        (("--calls", "0"), "at least 1"),
        (("--memory", "shared", "--map-order", "scattered"), "of private memory"),
    ],
)
def test_wrong_words_are_refused_with_exit_2(
    mprotect_folios: Path, options: tuple[str, ...], complaint: str
) -> None:
    argv = (str(mprotect_folios), *options)
    said = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert (said.returncode, said.stderr.count("\n")) == (2, 1)
    assert complaint in said.stderr
