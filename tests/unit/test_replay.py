# SPDX-License-Identifier: GPL-2.0-only
"""What was done says again what it said: launches, boots and visits that a journal holds."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fake_boots import boot
from ream.errors import CannotRunHere, VerificationFailed
from ream.experiment import named
from ream.experiment.registry import part
from ream.progress import Reporter
from ream.record.journal import JOURNAL, Journal
from ream.session import live
from ream.session import native as native_session
from ream.session.replay import Replayed, replayed_boots
from ream.stage import native
from ream.stage.hosted import programs_of


def test_a_boot_whose_last_event_was_refused_is_booted_again(tmp_path: Path) -> None:
    booted = list[str]()
    boots = [boot(tmp_path, name, booted, 1) for name in ("a", "b")]
    journal = Journal(tmp_path / JOURNAL)

    def measure() -> None:
        for one, event in replayed_boots(boots, at_once=1, journal=journal, reporter=Reporter()):
            if event is None and one.variant == "b":
                raise VerificationFailed("not the same with a and b")

    with pytest.raises(VerificationFailed):
        measure()
    journal.close()
    journal = Journal(tmp_path / JOURNAL)
    for _ in replayed_boots(boots, at_once=1, journal=journal, reporter=Reporter()):
        pass
    journal.close()
    assert booted == ["a", "b", "b"]


def test_a_visit_that_was_made_is_not_made_again(tmp_path: Path) -> None:
    made = []

    def do(text: str) -> Callable[[], str]:
        return lambda: made.append(text) or text

    journal = Journal(tmp_path / JOURNAL)
    memory = Replayed(journal)
    assert memory.recall("a", do('one "line"\nand another')) == 'one "line"\nand another'
    assert not memory.recalled
    journal.close()
    journal = Journal(tmp_path / JOURNAL)
    memory = Replayed(journal)
    assert memory.recall("a", do("other")) == 'one "line"\nand another'
    assert memory.recalled
    assert memory.recall("b", do("other")) == "other"
    journal.close()
    assert len(made) == 2


def test_two_rows_that_ask_for_the_same_are_both_measured(tmp_path: Path) -> None:
    said: list[tuple[str, bool]] = []
    for start in ("first", "second"):
        journal = Journal(tmp_path / JOURNAL)
        memory = Replayed(journal)
        for row in ("a", "its copy"):
            text = memory.recall("visit 0.0", lambda row=row, start=start: f"{row}, {start}")
            said.append((text, memory.recalled))
        journal.close()
    assert said == [
        *(("a, first", False), ("its copy, first", False)),
        *(("a, first", True), ("its copy, first", True)),
    ]


def test_a_row_that_can_no_longer_be_measured_is_not_left_out(
    tmp_path: Path,
) -> None:
    fork = named("fork").at("live")
    rows, of_fork = fork.rows[:3], part(type(fork), "live", live.Live)
    scarce = {rows[0].name}
    its = replace(of_fork, why_not=lambda row: "memory is short" if row.name in scarce else None)
    journal = Journal(tmp_path / JOURNAL)
    assert live.rows_left_out(its, rows, journal) == {rows[0].name: "memory is short"}
    scarce.add(rows[2].name)
    with pytest.raises(CannotRunHere, match=f"{rows[2].name}: .*when the run began.*is short"):
        live.rows_left_out(its, rows, journal)
    # Nor does one come in that the first launches do not have.
    scarce.clear()
    assert live.rows_left_out(its, rows, journal) == {rows[0].name: "memory is short"}
    journal.close()


def test_rows_that_were_made_smaller_stay_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = named("zone-device").at("native")
    rows, sized = experiment.rows, programs_of(experiment)[0].sized
    build = native.Build({}, {"sizeof_page": 64})
    its = replace(sized, needed_bytes=lambda rows, _: sum(row.device_bytes for row in rows) // 64)
    available = its.needed_bytes(rows, build)
    monkeypatch.setattr(native_session, "available_bytes", lambda: available)
    fits = []
    for _ in range(2):
        journal = Journal(tmp_path / JOURNAL)
        fits.append(native_session.rows_that_fit(rows, build, its, journal))
        journal.close()
        available *= 2  # there would be room for more now
    assert fits[0] == fits[1]
    assert fits[0][0] != rows
    assert fits[0][1]
    available = 1 << 20
    journal = Journal(tmp_path / JOURNAL)
    with pytest.raises(CannotRunHere, match="as it began; 1 MiB are available"):
        native_session.rows_that_fit(rows, build, its, journal)
    journal.close()
