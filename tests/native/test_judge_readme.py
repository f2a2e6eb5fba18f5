# SPDX-License-Identifier: GPL-2.0-only
"""README's judgements, as they are typed there: half a minute for the wrong patch, once mm/ is
compiled."""

import pytest

from ream.judge import page
from ream.paths import CHECKOUT

pytestmark = pytest.mark.xdist_group("reach")


@pytest.mark.parametrize(
    "quick",
    [pytest.param((), marks=pytest.mark.vm, id="whole"), pytest.param(("--quick",), id="quick")],
)
def test_the_wrong_patch_of_the_readme_is_judged_as_the_readme_shows(
    ream, quick: tuple[str, ...]
) -> None:
    command, *shown = (CHECKOUT / "tests/readme/wrong.txt").read_text().splitlines()
    patch = CHECKOUT / command.split()[-1]
    ran = ream("judge", *quick, str(patch), "--seed", "1", COLUMNS="84")
    assert ran.code == 5, ran.err
    said = ran.out.splitlines()
    begins = "judgement"
    assert _from(begins, said) == _from(begins, shown)


def _from(begins: str, lines: list[str]) -> list[str]:
    """The lines from the first one on that begins so: those before it tell the machine.

    Where a program is kept, and how the patch was named, is left out.
    """
    places = {line[: page.LABEL].strip(): number for number, line in enumerate(lines)}
    return lines[places[begins] : places["to run it"]] + lines[places["not seen"] :]


@pytest.mark.vm  # takes minutes, and what it takes to compile
def test_the_slow_patch_of_the_readme_is_found_slower_or_to_execute_more(ream) -> None:
    command = (CHECKOUT / "tests/readme/slow.txt").read_text().splitlines()[0]
    words = [str(CHECKOUT / one) if "/" in one else one for one in command.split()[2:]]
    ran = ream(*words, COLUMNS="84")
    assert ran.code == 1, ran.err
    assert "A regression" in ran.out
    assert "locked" in ran.out
