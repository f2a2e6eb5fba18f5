# SPDX-License-Identifier: GPL-2.0-only
"""What ream prints about kept records is what tests/golden has, letter by letter."""

from pathlib import Path

import pytest

from golden import COMMAND, FOLDER, texts, unlike, world

MADE = texts()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return world(tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize("file", MADE)
def test_what_is_printed_is_what_was_reviewed(file: str, place: Path) -> None:
    if diff := unlike(file, MADE[file](place)):
        pytest.fail(f"`{COMMAND}` writes it again, if this is meant:\n{diff}", pytrace=False)


def test_no_file_is_left_that_no_command_makes() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(MADE)
