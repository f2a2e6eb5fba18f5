# SPDX-License-Identifier: GPL-2.0-only
"""The programs of this experiment, and the hosted kernel that performs them."""

from pathlib import Path

import pytest

from ream.kernel.source import Tree
from ream.program.collection import texts_in
from ream.program.ran import Rig, numbered
from ream.program.step import Program
from ream.program.text import parse

PROGRAMS = texts_in(Path(__file__).parents[1] / "compared.programs")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "text" in metafunc.fixturenames:
        metafunc.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)


@pytest.fixture(scope="session")
def programs() -> dict[str, Program]:
    """Every program by its name."""
    return {name: numbered(parse(text)) for name, text in PROGRAMS.items()}


@pytest.fixture(scope="session")
def rig(kernel: Tree, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Rig:
    work = tmp_path_factory.mktemp("computer")
    return Rig.of(kernel, [], cache=cache, work=work, step=print)
