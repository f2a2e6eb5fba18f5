# SPDX-License-Identifier: GPL-2.0-only
"""docs/found.md is what the folders of defects say."""

from experiments.mm.found import PAGE, defects, page


def test_the_page_is_made_of_the_folders() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


def test_each_has_a_repair_for_each_kernel_and_shows_that_it_helps() -> None:
    assert defects()
    for one in defects():
        assert all(one.repair(kernel).exists() for kernel in one.kernels)
        assert set(one.guests) <= set(one.kernels)
        assert bool(one.unseen) != bool(one.guests)
        assert one.alarm or any(before != after for before, after in one.returned.values())
