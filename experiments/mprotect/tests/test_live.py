# SPDX-License-Identifier: GPL-2.0-only
"""Rows as jobs of a program, their order, and what is remarked about what it says."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from experiments.mprotect.jobs import (
    JobSample,
    blocks,
    jobs_of,
    sample_said,
    shared_settings,
    visit_order,
    why_not_job,
)
from experiments.mprotect.live import LIVE, ROWS
from experiments.mprotect.programs import MPROTECT_FOLIOS
from experiments.mprotect.rows import OPERATIONS, MprotectRow
from experiments.mprotect.toggles import OPS, job_of
from ream.experiment import named
from ream.measure.taken import Taken
from ream.stage.live import THP, Visits, sample_of


def row(**fields: object) -> MprotectRow:
    whole = {"name": "one", "rounds": 1, "folio_bytes": "4k", "operation": "rw-to-r", **fields}
    return MprotectRow.model_validate({"stage": "live", **whole})


def said(one: MprotectRow, time_ns: int, **fields: object) -> Taken:
    its = {"run": "r", "folio_kib": 4, "op": one.operation, "nr_ptes": 1024, "verified": True}
    sample = sample_said({**its, "time_ns": time_ns, **fields}, launch=0, number=0)
    return Taken(sample_of(sample, one.name, 64), said=sample)


def test_a_change_and_its_way_back_are_one_job() -> None:
    there, back = row(), row(operation="r-to-rw", rounds=3)
    assert job_of(there).name == job_of(back).name == "4:private:4194304:1:1:contiguous:r"
    (job,) = jobs_of(map(job_of, (there, back)))
    assert job.ops == ("rw-to-r", "r-to-rw")
    assert job.rounds == 3
    assert set(sum(OPS.values(), ())) == set(OPERATIONS)


def test_short_calls_lie_side_by_side_in_whole_blocks() -> None:
    job = job_of(row(call_bytes="40KiB", memory="shared", every=2))
    assert job.name == "4:shared:40960:25:2:contiguous:r"
    assert job.nr_bytes == 2 << 20
    assert job.shared
    assert [blocks(one) for one in (1, 2 << 20, (2 << 20) + 1)] == [2 << 20, 2 << 20, 4 << 20]


def test_caches_are_displaced_for_cold_rows_alone() -> None:
    warm, cold = (job_of(row(pre_state=state), 1 << 20) for state in ("warm", "cold"))
    assert cold.words == (*warm.words, "--displace-bytes", str(1 << 20))
    assert cold.name != warm.name


def test_every_live_row_has_a_job_and_no_two_have_one_sample() -> None:
    rows = named("mprotect").at("live").rows
    its = ROWS.jobs(rows)
    assert len({(its[one.name].name, one.operation) for one in rows}) == len(rows)
    assert all(one.operation in its[one.name].ops for one in rows)


def test_every_job_comes_once_in_every_round_in_changing_order() -> None:
    both = [job_of(row(rounds=2)), job_of(row(folio_bytes="64k", rounds=1))]
    order = [(launch, number, one.name) for launch, number, one in
             visit_order(both, launches=40, seed=3)]  # fmt: skip
    assert order == [(a, b, one.name) for a, b, one in visit_order(both, launches=40, seed=3)]
    for launch in range(40):
        its = [entry for entry in order if entry[0] == launch]
        assert sorted(entry[1:] for entry in its) == sorted(
            [(0, both[0].name), (1, both[0].name), (0, both[1].name)]
        )
    assert len({order[at][2] for at in range(0, len(order), 3)}) == 2


def test_shared_memory_has_settings_of_its_own() -> None:
    planned = shared_settings(64, (8, 64, 2048))
    assert [setting.value for setting in planned] == ["never", "advise", "never"]
    assert planned[1].path == f"{THP}/hugepages-64kB/shmem_enabled"


def test_what_cannot_be_had_here_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemAvailable:    2097152 kB\n")
    (tmp_path / "proc/kpageflags").touch()
    size = tmp_path / THP.lstrip("/") / "hugepages-64kB"
    size.mkdir(parents=True)
    (size / "enabled").write_text("always [never]\n")
    private, shared = (
        job_of(row(folio_bytes="64k", memory=kind)) for kind in ("private", "shared")
    )
    assert why_not_job(private, tmp_path) is None
    assert "no shared folios of that size" in str(why_not_job(shared, tmp_path))
    (size / "shmem_enabled").write_text("always [never]\n")
    assert why_not_job(shared, tmp_path) is None
    assert why_not_job(job_of(row(memory="shared")), tmp_path) is None
    large = job_of(row(call_bytes="1GiB"))
    (tmp_path / "proc/meminfo").write_text("MemAvailable:    1048576 kB\n")
    assert "1 GiB do not fit" in str(why_not_job(large, tmp_path))


def test_what_a_program_says_is_taken_for_its_row(tmp_path: Path) -> None:
    """Without a program: its words come from a journal."""
    there, back = row(), row(name="back", operation="r-to-rw", rounds=2)
    name = job_of(there).name
    lines = [
        {"run": name, "folio_kib": 4, "round": 0, "op": op, "time_ns": time, "window": 9,
         "nr_ptes": 1024, "verified": True, **more}
        for op, time, more in (
            ("rw-to-r", 5, {}), ("r-to-rw", 7, {"write_faults": 0, "soft_dirtied": None}),
        )
    ]  # fmt: skip
    text = "\n".join(map(json.dumps, [{"hello": {}}, *lines, {"end": {"ok": True, "redone": 0}}]))
    visits = Visits(1, seed=1, work=tmp_path, step=print, recall=lambda _name, _do: text)
    samples = [one.sample for one in ROWS.taken([there, back], visits)]
    assert [(one.row, one.round, one.time_ns) for one in samples] == [
        ("one", 0, 5), ("back", 0, 7), ("back", 1, 7),
    ]  # fmt: skip
    assert {one.nr_bytes for one in samples} == {1024 * 64}


def test_a_word_too_many_is_refused() -> None:
    with pytest.raises(ValidationError, match="spoon"):
        said(row(), 1, spoon=1)


def test_large_folios_are_compared_with_single_pages_of_the_same_row() -> None:
    small, large = row(name="small"), row(name="large", folio_bytes="64k")
    other = row(name="other", folio_bytes="64k", memory="shared")
    its = [said(small, 100), said(large, 25), said(other, 3), said(small, 100)]
    found = LIVE.remarks([small, large, other], its, ())
    assert found == {"small": (), "large": ("0.25 of the 4 KiB row",), "other": ()}


def test_what_nobody_wrote_and_yet_is_dirty_is_remarked() -> None:
    one = row(operation="r-to-rw", folio_bytes="64k")
    found = LIVE.remarks([one], [said(one, 1, soft_dirtied=512, write_faults=3)], ())
    assert found["one"] == (
        "writing to 1024 pages took up to 3 faults afterwards",
        "up to 512 of 1024 pages are soft-dirty afterwards, and nobody wrote to them",
    )


def test_the_programs_operations_are_those_of_rows() -> None:
    source = MPROTECT_FOLIOS.sources[0].read_text()
    assert all(f'"{op}"' in source for op in OPERATIONS)
    assert set(JobSample.model_fields) >= {"write_faults", "soft_dirtied"}
