# SPDX-License-Identifier: GPL-2.0-only
"""What every kernel is tried with before it is timed."""

from experiments.zone_device.cases import PAGEBLOCK_ORDER, _can_be_looked_at, edge_devices
from ream.oracle.memmap import DeviceRange, Facts

FACTS = {
    "VMEMMAP_RESERVE_NR": 2,
    "ARCH_WANT_OPTIMIZE_DAX_VMEMMAP": 1,
    "PAGE_SIZE": 4096,
    "sizeof.page": 64,
}
BLOCK = 1 << PAGEBLOCK_ORDER


def lacks_a_descriptor(device: DeviceRange, facts: Facts) -> bool:
    """Whether the first page of a pageblock is a tail that nothing is written to."""
    return any(
        (pfn - part.start_pfn - part.skip_pages) % (1 << part.order)
        >= part.written_per_compound(facts)
        for part in device.parts()
        for pfn in range(
            -(-(part.start_pfn + part.skip_pages) // BLOCK) * BLOCK,
            part.start_pfn + part.nr_pages,
            BLOCK,
        )
    )


def test_a_kernel_with_debug_vm_gets_no_pageblock_without_a_descriptor() -> None:
    """It looks up the zone of each pageblock's first page."""
    devices = [*edge_devices()]
    lacking = [one for one in devices if lacks_a_descriptor(one, FACTS)]
    assert {one.order > PAGEBLOCK_ORDER for one in lacking} == {True, False}
    for debug_vm in (0, 1):
        facts = {**FACTS, "DEBUG_VM": debug_vm}
        tried = [one for one in devices if _can_be_looked_at(one, facts)]
        assert tried == [one for one in devices if not debug_vm or one not in lacking]
