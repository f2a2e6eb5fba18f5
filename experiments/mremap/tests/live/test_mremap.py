# SPDX-License-Identifier: GPL-2.0-only
"""mremap() on the running kernel, small: every kind of move, and every way to be wrong."""

import subprocess
from pathlib import Path

import pytest

from experiments.mprotect.jobs import Job, sample_said, settings_of, why_not_job
from experiments.mremap.moves import job_of
from experiments.mremap.programs import MREMAP_FOLIOS
from experiments.mremap.rows import MremapRow
from ream.command import run
from ream.errors import VerificationFailed
from ream.settings import Door
from ream.stage.live import operations
from ream.stage.workload import HEADERS, build_workload, compile_command, run_workload

pytestmark = pytest.mark.xdist_group("settings")

DEADLINE_S = 120.0
HERE = Path(__file__).parent


def job(**fields: object) -> Job:
    whole = {"folio_bytes": "4k", "call_bytes": "1MiB", **fields}
    return job_of(MremapRow.model_validate({"name": "r", "stage": "live", "rounds": 1, **whole}))


def words(program: Path, one: Job) -> tuple[str, ...]:
    return (str(program), "--run", one.name, *one.words)


@pytest.fixture(scope="module")
def mremap_folios(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_workload(MREMAP_FOLIOS, tmp_path_factory.mktemp("workload"))


@pytest.mark.parametrize(
    "fields",
    [
        *({"folio_bytes": size, "call_bytes": "4MiB"} for size in ("4k", "16k", "64k", "2m")),
        {"layout": "one-table"},
        {"layout": "one-table", "folio_bytes": "64k"},
        {"layout": "one-table", "call_bytes": "8KiB"},
        {"folio_bytes": "64k", "every": 2},
        {"every": 3, "layout": "one-table", "call_bytes": "64KiB"},
        {"frames": "scattered", "pre_state": "cold"},
    ],
)
def test_memory_is_moved_there_and_back(
    door: Door, mremap_folios: Path, tmp_path: Path, fields: dict[str, object]
) -> None:
    one = job(**fields)
    if reason := why_not_job(one):
        pytest.skip(reason)
    with door.applied(settings_of(one)):
        said = run_workload(words(mremap_folios, one), tmp_path, DEADLINE_S)
    (sample,) = (sample_said(its, launch=0, number=0) for its in operations(said))
    assert (sample.run, sample.op, sample.verified) == (one.name, "move", True)
    # Memory is this process's own, and was written: it stays writable without a fault.
    assert sample.write_faults == 0
    assert sample.nr_ptes >= 1024
    assert sample.time_ns > 0


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (1, "page 639 can be read after mremap"),
        (2, "page 384 can be read after mremap"),
        (3, "page 639 holds other contents after mremap"),
        (4, "page 639 holds other contents after mremap"),
    ],
)
def test_a_move_that_is_wrong_is_noticed(tmp_path: Path, wrong: int, complaint: str) -> None:
    program = tmp_path / "wrong"
    sources = (*MREMAP_FOLIOS.sources, HERE / "wrong.c")
    options = (*HEADERS, *map(str, sources), f"-DWRONG={wrong}", "-Wl,--wrap=mremap")
    run(compile_command(program, *options, work=tmp_path, arch=None))
    with pytest.raises(VerificationFailed, match=complaint):
        run_workload(words(program, job()), tmp_path, DEADLINE_S)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ((), "--folio-kib K: missing"),
        (("--call-bytes", "100"), "not a multiple of 4096"),
        (("--layout", "three"), "--layout three: one-table or two-tables"),
        (("--layout", "one-table", "--call-bytes", "12288"), "no power of two"),
        (("--calls", "0"), "at least 1"),
    ],
)
def test_wrong_words_are_refused_with_exit_2(
    mremap_folios: Path, options: tuple[str, ...], complaint: str
) -> None:
    argv = (str(mremap_folios), *options)
    said = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert (said.returncode, said.stderr.count("\n")) == (2, 1)
    assert complaint in said.stderr
