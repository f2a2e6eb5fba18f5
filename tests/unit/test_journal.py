# SPDX-License-Identifier: GPL-2.0-only
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ream.errors import BadUsage, CannotRunHere
from ream.record import journal as journal_module
from ream.record.journal import JOURNAL, Journal, holds_a_round
from ream.session import vm
from ream.session.plan import check_guests


def opened(directory: Path) -> Journal:
    return Journal(directory / JOURNAL)


def reopened(journal: Journal, directory: Path) -> Journal:
    journal.close()
    return opened(directory)


def test_what_is_whole_stays_and_what_is_not_is_dropped(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    journal.add("launch 0", "1")
    journal.whole("launch 0")
    journal.add("launch 0", "2")
    journal.add("launch 1", "3")
    assert holds_a_round(tmp_path)
    again = reopened(journal, tmp_path)
    assert again.said("launch 0") == ("1",)
    assert not again.has("launch 1")
    assert again.nr_dropped == 2
    once_more = reopened(again, tmp_path)
    assert (once_more.said("launch 0"), once_more.nr_dropped) == (("1",), 0)
    once_more.close()


def test_what_a_piece_drops_does_not_stay_when_it_is_whole_in_the_end(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    journal.add("launch 0", "1")
    journal.whole("launch 0")
    journal.add("launch 0", "2")
    journal.add("launch 1", "3")
    journal.drop("launch 0")
    journal.add("launch 0", "4")
    journal.whole("launch 0")
    journal.whole("launch 1")
    assert (journal.said("launch 0"), journal.said("launch 1")) == (("1", "4"), ("3",))
    again = reopened(journal, tmp_path)
    assert (again.said("launch 0"), again.said("launch 1")) == (("1", "4"), ("3",))
    assert again.nr_dropped == 0
    again.close()


def test_a_journal_of_decisions_alone_holds_no_round(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    journal.settle("rows", ["a"])
    journal.add("launch 0", "1")
    assert not journal.holds_a_round
    assert not holds_a_round(tmp_path)
    assert not holds_a_round(tmp_path / "nowhere")
    journal.close()


def test_a_decision_is_made_once(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    assert journal.settle("rows", [1]) == [1]
    again = reopened(journal, tmp_path)
    assert again.settle("rows", [2]) == [1]
    again.close()


def test_a_run_goes_on_with_the_guests_that_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = opened(tmp_path)
    check_guests(journal, "KVM")
    again = reopened(journal, tmp_path)
    check_guests(again, "KVM")
    monkeypatch.setattr(vm, "planned", lambda *_: SimpleNamespace(setting="TCG"))
    record, nothing = cast(Any, SimpleNamespace(journal=again)), cast(Any, None)
    with pytest.raises(BadUsage, match="guests: KVM when it began, TCG now"):
        vm.measure_vm(nothing, nothing, work=tmp_path, record=record, reporter=nothing)
    again.close()


PIECES = st.sampled_from(["launch 0", "launch 1", 'a "quoted" piece', "☃"])
STEPS = st.lists(
    st.tuples(PIECES, st.one_of(st.none(), st.integers(), st.text(), st.booleans())), max_size=30
)


@given(STEPS, st.data())
def test_whatever_a_death_cuts_off_the_rounds_before_it_stay(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, object]], data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("journal")
    journal = opened(directory)
    path = directory / JOURNAL
    pending: dict[str, list[str]] = {}
    kept: dict[str, list[str]] = {}
    states = [(0, {})]
    for piece, said in steps:  # None marks the piece whole
        if said is None:
            journal.whole(piece)
            kept.setdefault(piece, []).extend(pending.pop(piece, []))
        else:
            journal.add(piece, json.dumps(said))
            pending.setdefault(piece, []).append(json.dumps(said))
        states.append((path.stat().st_size, {name: list(its) for name, its in kept.items()}))
    journal.close()
    cut = data.draw(st.integers(0, path.stat().st_size))
    path.write_bytes(path.read_bytes()[:cut])
    # A line may be whole but for its end.
    sure = max((state for state in states if state[0] <= cut), key=lambda state: state[0])[1]
    perhaps = max((s for s in states if s[0] <= cut + 1), key=lambda state: state[0])[1]
    again = opened(directory)
    found = {piece: list(again.said(piece)) for piece in kept if again.has(piece)}
    again.close()
    assert found in (sure, perhaps)


def test_what_follows_a_damaged_line_is_measured_again(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    for number in range(3):
        journal.add(f"launch {number}", "1")
        journal.whole(f"launch {number}")
    journal.close()
    lines = (tmp_path / JOURNAL).read_text().splitlines()
    lines[2] = lines[2][:9] + "\0" + lines[2][10:]
    (tmp_path / JOURNAL).write_text("\n".join(lines) + "\n")
    again = opened(tmp_path)
    assert [again.has(f"launch {number}") for number in range(3)] == [True, False, False]
    assert again.nr_dropped == 4
    again.close()


@pytest.mark.parametrize("line", [b"[]", b"{}", b'{"piece": 1, "whole": true}', b'{"settled": 1}'])
def test_a_line_that_is_none_of_ours_ends_what_is_believed(tmp_path: Path, line: bytes) -> None:
    (tmp_path / JOURNAL).write_bytes(line + b'\n{"piece": "a", "whole": true}\n')
    journal = opened(tmp_path)
    assert not journal.holds_a_round
    assert journal.nr_dropped == 2
    journal.close()


def test_a_full_disk_is_one_line_and_spoils_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = opened(tmp_path)
    journal.add("launch 0", "1")
    journal.whole("launch 0")
    with Path("/dev/full").open("ab", buffering=0) as full:
        own, journal._file = journal._file, full
        with pytest.raises(CannotRunHere, match=r"^[^\n]*No space left[^\n]*$"):
            journal.add("launch 0", "2")
        journal._file = own
    again = reopened(journal, tmp_path)
    assert again.said("launch 0") == ("1",)

    def refuses(*_: object) -> None:
        raise OSError(28, "No space left on device")

    again.close()
    monkeypatch.setattr(journal_module.os, "fsync", refuses)
    with pytest.raises(CannotRunHere):
        opened(tmp_path)
    monkeypatch.undo()
    last = opened(tmp_path)
    assert last.said("launch 0") == ("1",)
    last.close()
