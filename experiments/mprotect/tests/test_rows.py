# SPDX-License-Identifier: GPL-2.0-only
"""Rows of mprotect(): what they stand for, and which cannot be."""

import pytest
from pydantic import ValidationError

from experiments.mprotect.plan import halved
from experiments.mprotect.rows import MprotectRow


def row(**fields: object) -> MprotectRow:
    whole = {"name": "one", "rounds": 1, "folio_bytes": "4k", "operation": "rw-to-r", **fields}
    return MprotectRow.model_validate(whole)


@pytest.mark.parametrize(
    ("call_bytes", "nr_calls", "nr_ptes"),
    [("4KiB", 256, 256), ("40KiB", 25, 250), ("1MiB", 1, 256), ("4MiB", 1, 1024)],
)
def test_a_short_call_is_made_as_often_as_fills_a_mapping(
    call_bytes: str, nr_calls: int, nr_ptes: int
) -> None:
    assert row(call_bytes=call_bytes).nr_calls == nr_calls
    assert row(call_bytes=call_bytes).nr_ptes == nr_ptes


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"folio_bytes": "5k"}, "folio_bytes must be a power of two"),
        ({"call_bytes": "6KiB"}, "call_bytes must be a multiple of 4 KiB"),
        ({"memory": "shared", "shared_every": 2}, "no shared page is exclusive"),
        ({"history": "mixed", "folio_bytes": "64k"}, "a mixed history is of single pages"),
        ({"stage": "live", "shared_every": 7}, "shared_every and history can only be set"),
        ({"stage": "vm", "history": "mixed"}, "shared_every and history can only be set"),
        ({"stage": "vm", "pre_state": "cold"}, "the vm stage does not do cold"),
        ({"stage": "live", "memory": "shared", "frames": "scattered"}, "frames of shared memory"),
    ],
)
def test_a_row_that_cannot_be_is_refused(fields: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        row(**fields)


def test_a_title_says_what_is_not_usual() -> None:
    title = row(call_bytes="8KiB", frames="scattered", every=2, shared_every=7).title()
    assert title == (
        "rw-to-r of 8 KiB, private folios of 4 KiB, warm, 128 calls, frames scattered, "
        "one entry in 2, one page in 7 not exclusive"
    )


def test_a_row_is_halved_until_it_would_be_several_calls() -> None:
    half = halved(row(call_bytes="4MiB"))
    assert half is not None
    assert half.call_bytes == 2 << 20
    assert halved(row(call_bytes="1MiB")) is None
