# SPDX-License-Identifier: GPL-2.0-only
"""A program to run on the running kernel."""

from pathlib import Path

import pytest

from ream.experiment import named
from ream.stage.hosted import programs_of
from ream.stage.workload import build_workload


@pytest.fixture(scope="session")
def fork_folios(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workload of fork."""
    (program,) = programs_of(named("fork"))[0].programs
    return build_workload(program, tmp_path_factory.mktemp("workload"))
