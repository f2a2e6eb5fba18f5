# SPDX-License-Identifier: GPL-2.0-only
"""A series that changes nothing of a whole kernel is told so, and not booted."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ream.errors import BadUsage
from ream.kernel.build import BUILD
from ream.kernel.image import Image
from ream.measure.plan import Launch, without
from ream.progress import Reporter
from ream.session.pointless import left_out, same_kernels, trees_of

REPORTER = Reporter(quiet=True)
TREES = {"comment": "base", "other": "base"}


def image(place: Path, text: str) -> Image:
    build = place / BUILD
    build.mkdir(parents=True)
    (build / "code.c").write_text(text)
    subprocess.run(["gcc", "-O2", "-g", "-c", "code.c"], cwd=build, check=True)
    return Image(place, build / "bzImage", build / ".config", {})


@pytest.fixture
def found(tmp_path: Path) -> dict[str, str]:
    code = "int of(int kind) { return kind + 1; }\n"
    images = {
        "base": image(tmp_path / "base", code),
        "comment": image(tmp_path / "comment", "/* more */\n" + code),
        "other": image(tmp_path / "other", code.replace("1", "2")),
    }
    return same_kernels(images, TREES, REPORTER)


def test_a_comment_makes_the_same_kernel(found: dict[str, str]) -> None:
    assert found == {"comment": "the same object code as base in all 1 objects of the kernel"}


def test_it_is_left_out_where_another_series_is_measured(found: dict[str, str]) -> None:
    assert left_out([found], TREES, REPORTER) == found
    launches = (Launch(0, 1, 0, ("comment", "base", "other")),)
    assert without(found, launches)[0].link_order == ("base", "other")


def test_nothing_is_measured_where_no_other_is_given(found: dict[str, str]) -> None:
    with pytest.raises(BadUsage, match="comment: not measured: the same .* --measure-anyway"):
        left_out([found], {"comment": "base"}, REPORTER)
    assert left_out([{}], {}, REPORTER) == {}


def test_what_a_series_is_compared_with_is_the_tree_it_stands_on() -> None:
    variants = [
        SimpleNamespace(name="before", compared_with=None),
        SimpleNamespace(name="mine", compared_with="base"),
    ]
    assert trees_of(cast("Any", SimpleNamespace(variants=variants))) == {"mine": "base"}
