# SPDX-License-Identifier: GPL-2.0-only
"""The words of a runner's plan are those of row.def, and every fault names its field."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ream.errors import ReamError
from ream.stage.runner_plan import Memory, line

DEFINITION = """\
ROW(TEXT, name, 64)
REQUEST(UINT, threads)	/* Of a node. */
ROW(CHOICE, state, states)
REQUEST(LONGS, counts, 2)
ROW(IMAGE, image)
ROW(IMAGE_OR_NONE, more)
ROW(IMAGES, tables, 2)
"""
WORDS: dict[str, Any] = {
    "name": "row-1",
    "threads": True,
    "state": "warm",
    "counts": (np.uint64(3), -4),
    "image": Path("/i"),
    "more": None,
    "tables": [Path("/t"), None],
}


@pytest.fixture
def definition(tmp_path: Path) -> Path:
    path = tmp_path / "row.def"
    path.write_text(DEFINITION)
    return path


def test_a_line_has_every_value_as_the_runner_reads_it(definition: Path) -> None:
    assert line(definition, WORDS) == (
        "name=row-1 threads=1 state=warm counts=3,-4 image=/i more=- tables=/t,-\n"
    )


def test_a_file_that_need_not_be_there_may_be_left_out(definition: Path) -> None:
    words = {name: value for name, value in WORDS.items() if name != "more"}
    assert "more" not in line(definition, words)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"thread": 1}, "no field thread"),
        ({"threads": "1"}, "threads: no value of the kind UINT (1)"),
        ({"threads": (1, 2)}, "threads: no value of the kind UINT"),
        ({"name": "two words"}, "name: no value of the kind TEXT (two words)"),
        ({"name": ""}, "name: no value of the kind TEXT"),
        ({"image": None}, "image: no value of the kind IMAGE (None)"),
        ({"tables": Path("/t"), "counts": [None]}, "counts: no value of the kind LONGS"),
    ],
)
def test_a_fault_names_its_field(definition: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(ReamError) as fault:
        line(definition, WORDS | change)
    assert str(definition) in str(fault.value)
    assert said in str(fault.value)


def test_fields_without_a_value_are_named_all_at_once(definition: Path) -> None:
    with pytest.raises(ReamError, match="no value for counts; no value for image"):
        line(definition, {n: v for n, v in WORDS.items() if n not in ("image", "counts")})


def test_an_array_is_one_file_however_many_rows_need_it() -> None:
    with ExitStack() as stack:
        memory, array = Memory(stack), np.arange(3, dtype=np.uint32)
        path = memory.array(array)
        assert path is not None
        assert memory.array(array) == path
        assert path.read_bytes() == array.tobytes()
        assert memory.array(np.zeros(0)) is None
        assert len(memory.descriptors) == 1
