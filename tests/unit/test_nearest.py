# SPDX-License-Identifier: GPL-2.0-only
"""Which names are offered in place of one that there is not."""

import pytest

from ream.nearest import hint

ROWS = ("fork-4k", "fork-64k", "refork-64k", "zone-device-private-popple")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("fork-64", " (did you mean fork-64k or fork-4k or refork-64k?)"),
        ("fork-64K", " (did you mean fork-64k?)"),
        ("popple", " (did you mean zone-device-private-popple?)"),
        ("nothing", ""),
        ("", ""),
    ],
)
def test_names_are_near_in_letters_or_in_what_they_hold(asked: str, said: str) -> None:
    assert hint(asked, ROWS) == said


def test_what_half_of_all_names_hold_is_no_hint() -> None:
    assert hint("4", [f"row-of-the-kind-{one}-4" for one in range(4)]) == ""
