# SPDX-License-Identifier: GPL-2.0-only
"""What every kernel is tried with before it is timed."""

import pytest

from experiments.zone_device.cases import PAGEBLOCK_ORDER, _can_be_looked_at, edge_devices

FACTS = {"VMEMMAP_RESERVE_NR": 2, "PAGE_SIZE": 4096, "sizeof.page": 64}


@pytest.mark.parametrize(("debug_vm", "all_of_them"), [(0, True), (1, False)])
def test_a_kernel_with_debug_vm_gets_no_pageblock_without_a_descriptor(
    debug_vm: int, all_of_them: bool
) -> None:
    """It looks up the zone of each pageblock's first page, which may be a tail that is shared."""
    facts = {**FACTS, "DEBUG_VM": debug_vm}
    devices = [*edge_devices()]
    tried = [one for one in devices if _can_be_looked_at(one, facts)]
    assert (tried == devices) is all_of_them
    large = [one for one in tried if one.order > PAGEBLOCK_ORDER]
    assert large
    shared = [one for one in large if not one.skip_pages and not one.early_pages]
    assert bool(shared) is all_of_them
