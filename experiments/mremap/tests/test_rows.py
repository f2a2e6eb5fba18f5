# SPDX-License-Identifier: GPL-2.0-only
"""Rows of mremap(): which cannot be, and what a program is told of the others."""

import pytest
from pydantic import ValidationError

from experiments.mremap.live import ROWS
from experiments.mremap.moves import OPERATION, job_of, mapped_bytes
from experiments.mremap.programs import MREMAP_FOLIOS
from experiments.mremap.rows import MremapRow
from ream.experiment import named

MIB = 1 << 20


def row(**fields: object) -> MremapRow:
    whole = {"name": "one", "rounds": 1, "folio_bytes": "4k", "stage": "live", **fields}
    return MremapRow.model_validate(whole)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"clean": True}, "clean can only be set in the native stage"),
        ({"call_bytes": "64KiB"}, "less than 1 MiB only move within a table"),
        ({"stage": "vm", "pre_state": "cold"}, "the vm stage does not do cold"),
        ({"layout": "one-table", "call_bytes": "2MiB"}, "no more than 1 MiB move within a table"),
    ],
)
def test_a_row_that_cannot_be_is_refused(fields: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        row(**fields)


@pytest.mark.parametrize(
    ("fields", "nr_bytes"),
    [
        ({"layout": "one-table", "call_bytes": "1MiB"}, 8 * MIB),
        ({"layout": "one-table", "call_bytes": "4KiB"}, 8 * MIB),
        ({"call_bytes": "1MiB"}, 4 * 4 * MIB),
        ({"call_bytes": "64MiB"}, 66 * MIB),
    ],
)
def test_a_program_maps_what_moves_and_what_lies_between(
    fields: dict[str, object], nr_bytes: int
) -> None:
    assert mapped_bytes(row(**fields)) == nr_bytes
    assert job_of(row(**fields)).nr_bytes == nr_bytes


def test_a_job_says_all_that_a_row_asks() -> None:
    job = job_of(row(folio_bytes="64k", layout="one-table", call_bytes="64KiB", every=2))
    assert job.name == "64:one-table:65536:64:2:contiguous"
    assert job.words[:4] == ("--folio-kib", "64", "--layout", "one-table")
    assert f'"op\\":\\"{OPERATION}' in MREMAP_FOLIOS.sources[0].read_text()


def test_every_live_row_has_a_job_of_its_own() -> None:
    rows = named("mremap").at("live").rows
    assert len({job.name for job in ROWS.jobs(rows).values()}) == len(rows)


def test_titles_and_parameters_leave_out_what_a_stage_has_not() -> None:
    guest = row(stage="vm", call_bytes="16MiB", every=2)
    assert guest.title() == "16 MiB across tables, folios of 4 KiB, one entry in 2"
    assert guest.params()["pre_state"] is None
    assert guest.params()["clean"] is None
    assert row(stage="native").params()["clean"] is False
