# SPDX-License-Identifier: GPL-2.0-only
"""Which variants a run can compare on a tree that our series were not written for."""

from types import SimpleNamespace

import pytest

from ream.kernel.series import Patch, Series
from ream.kernel.variant import DoesNotApply
from ream.variants import Variant, suited_to


def _of(name: str, *patches: str, given: str | None = None) -> Variant:
    return Variant(name, (Series(name, tuple(map(_patch, patches))),) if patches else (), given)


def _patch(name: str) -> Patch:
    return SimpleNamespace(name=name, diff_sha256=name, options=())  # type: ignore[return-value]


def _refuse(*names: str):
    def attempt(patches) -> None:
        for patch in patches:
            if patch.name in names:
                raise DoesNotApply(patch, "does not apply: mm/a.c: hunk 1")

    return attempt


def test_what_does_not_apply_to_a_tree_is_left_out_with_a_line() -> None:
    chosen = [
        _of("before"),
        _of("published", "p"),
        _of("ream", "p", "r"),
        _of("mine", "m", given="before"),
    ]
    suited = suited_to(chosen, _refuse("r"))
    assert [one.name for one in suited.variants] == ["before", "published", "mine"]
    assert suited.notes == ("ours is left out: r does not apply: mm/a.c: hunk 1",)
    assert suited_to(chosen, _refuse()).variants == tuple(chosen)
    with pytest.raises(DoesNotApply):
        suited_to(chosen, _refuse("m"))


def test_a_tree_stands_in_for_a_before_that_does_not_apply() -> None:
    """The tree itself is then no variant of its own: it would be compared with itself."""
    befores = [_of("before", "b"), _of("before-again", "b")]
    mine = [_of("published"), _of("published-again"), _of("mine", "m", given="published")]
    suited = suited_to([*befores, _of("ream", "r"), *mine], _refuse("b"))
    assert [one.name for one in suited.variants] == ["before", "before-again", "ream", "mine"]
    assert not suited.variants[0].patches
    assert suited.variants[-1].compared_with == "before"
    assert suited.notes == ("before is the tree itself: b does not apply: mm/a.c: hunk 1",)
