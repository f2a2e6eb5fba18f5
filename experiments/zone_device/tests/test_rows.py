# SPDX-License-Identifier: GPL-2.0-only
"""Rows of zone-device: what they come to, and what no device can be."""

import pytest

from experiments.zone_device.plan import halved
from experiments.zone_device.tests.world import make_row
from ream.errors import BadUsage
from ream.experiment.section import PAGES_PER_SECTION


def test_a_row_knows_its_pages_and_what_is_written_of_its_map() -> None:
    fields = {"name": "r", "device_bytes": 1 << 30, "type": "GENERIC", "rounds": 1}
    base = make_row({**fields, "order": 0})
    assert (base.nr_pages, base.nr_sections) == (262144, 8)
    assert base.nr_sections * PAGES_PER_SECTION == base.nr_pages
    assert base.map_bytes == base.written_bytes == 16 << 20
    # 2 MiB compounds: 128 of 512 struct pages, unless the map lies on the device.
    assert make_row({**fields, "order": 9}).written_bytes == 4 << 20
    assert make_row({**fields, "order": 9, "altmap": True}).written_bytes == 16 << 20
    # Two vmemmap pages or fewer leave nothing to share.
    assert make_row({**fields, "order": 7}).pages_per_compound == 128
    # One compound of 1 GiB.
    assert make_row({**fields, "order": 18}).written_bytes == 128 * 64


SMALL = {"name": "r", "device_bytes": "256MiB", "order": 0, "type": "FS_DAX", "rounds": 1}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"order": 18}, "pages of 1 GiB, and 256 MiB is no whole number of them: .* order 0 to 16"),
        ({"order": 17, "device_bytes": "640MiB"}, "pages of 512 MiB, .* or order 0 to 15"),
        ({"order": 18, "device_bytes": "1152MiB", "altmap": True}, "give another size, or order 0"),
        ({"order": 18, "stage": "vm", "type": "GENERIC"}, "pages of 1 GiB, and 256 MiB"),
        ({"type": "PRIVATE", "altmap": True}, "no memory of its own .*: types FS_DAX and GENERIC"),
        ({"type": "PCI_P2PDMA", "altmap": True}, "no memory of its own for an altmap"),
        ({"chunk_bytes": "1GiB"}, "chunk_bytes of 1 GiB are more .*: at most 256 MiB"),
        ({"first_touch": True, "pre_state": "dirty"}, "never touched: .* pre_state evicted"),
    ],
)
def test_a_device_that_cannot_exist_is_refused_with_what_can(
    fields: dict[str, object], said: str
) -> None:
    with pytest.raises(BadUsage, match=said) as refused:
        make_row({**SMALL, **fields})
    assert len(str(refused.value).splitlines()) == 1


def test_a_row_made_smaller_for_want_of_memory_can_still_exist() -> None:
    row = make_row({**SMALL, "device_bytes": "3GiB", "order": 18, "type": "GENERIC"})
    smaller = halved(row)
    assert smaller is not None
    assert smaller.device_bytes == 1 << 30
    assert halved(smaller) is None


def test_a_row_from_options_is_held_to_the_same_rules() -> None:
    with pytest.raises(BadUsage) as refused:
        make_row({"name": "custom", "device_bytes": 1, "order": 30, "rounds": 2})
    assert str(refused.value).splitlines() == [
        "command line: device_bytes: not a whole number of sections of 128 MiB (it is 1)",
        "command line: order: must be less than or equal to 18 (it is 30)",
        "command line: type: Field required",
    ]
