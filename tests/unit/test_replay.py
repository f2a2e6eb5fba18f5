# SPDX-License-Identifier: GPL-2.0-only
"""What was done says again what it said: launches, boots and visits that a journal holds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from experiments.compact.boot import CompactSample
from experiments.compact.columns import CpuTimes
from experiments.compact.guests import CompactBoot
from experiments.deferred_init.boot import Booted, Times
from experiments.deferred_init.buddy import DeferredNode
from experiments.deferred_init.guests import DeferredBoot
from experiments.deferred_init.state import State
from experiments.fork.boot import ForkSample
from experiments.fork.guests import ForkBoot
from experiments.fork.live import LIVE
from experiments.migrate.boot import MigrateSample
from experiments.migrate.guests import MigrateBoot
from experiments.zone_device import plan as zone_device
from experiments.zone_device.boot import Bind, Call, Checked
from experiments.zone_device.guests import DeviceBoot
from ream.errors import CannotRunHere, VerificationFailed
from ream.experiment import named
from ream.progress import Reporter
from ream.record.journal import JOURNAL, Journal
from ream.session import live
from ream.session import native as native_session
from ream.session.replay import Replayed, replayed_boots
from ream.stage import native
from ream.stage.boots import Boot
from ream.stage.memory import Sized
from ream.stage.vm import Start

CALL = Call(
    start_pfn=1,
    nr_pages=2,
    nid=0,
    pgmap=4,
    type=1,
    order=9,
    altmap=True,
    altmap_base_pfn=1,
    altmap_reserve=0,
    altmap_free=3,
    map=1 << 63,
    early=False,
    time_ns=17,
)
EVENTS: dict[type[Boot], object] = {
    ForkBoot: ForkSample(
        folio_kib=4, round=1, op="fork", time_ns=3, nr_ptes=9, verified=True, digest="ab"
    ),
    MigrateBoot: (
        3,
        MigrateSample(
            op="move",
            folio_kib=4,
            round=1,
            source=0,
            target=1,
            time_ns=5,
            nr_bytes=4096,
            nr_folios=1,
            nr_arrived=1,
            counters={"pgmigrate_success": 1},
            verified=True,
        ),
    ),
    DeviceBoot: Checked(Bind(number=1, calls=(CALL,), message=None, bind_ns=5, unbind_ns=None), 64),
    CompactBoot: CompactSample(
        mode="dma",
        asked=2,
        allocated=1,
        ballast=0,
        time_ns=9,
        page_copy_ns=1,
        longest_ns=2,
        resident_pages=3,
        wrong_words=0,
        user_ns=0,
        system_ns=1,
        idle_ns=2,
        machine=CpuTimes(user_ns=1, system_ns=2, idle_ns=3, steal_ns=4),
        hog_iterations=None,
        counters={"compact_stall": 1},
        verified=True,
    ),
    DeferredBoot: Booted(
        Times(1, 2, 3),
        (State(DeferredNode(0, 1, 99, 9, ((10, 20), (20, 30))), "digest", 20, (11, 12)),),
    ),
}


@dataclass(frozen=True)
class FakeBoot(Boot):
    """Says what it is told to say, and counts its boots."""

    booted: list[str]
    events: tuple[object, ...]

    @property
    def title(self) -> str:
        return self.variant

    def run(self, _start: Start) -> Iterator[object]:
        self.booted.append(self.variant)
        yield from self.events


def boot(tmp_path: Path, name: str, booted: list[str], *events: object) -> FakeBoot:
    nothing = cast(Any, None)
    return FakeBoot(name, 0, nothing, nothing, (), tmp_path / f"{name}-0.log", booted, events)


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_a_boot_that_is_done_says_again_what_it_said(tmp_path: Path, kind: type[Boot]) -> None:
    event, booted = EVENTS[kind], list[str]()
    monkey = type("Monkey", (FakeBoot,), {"says": kind.says})
    boots = [monkey(**vars(boot(tmp_path, name, booted, event))) for name in ("a", "b")]
    passes = []
    for _ in range(2):
        journal = Journal(tmp_path / JOURNAL)
        passes.append(
            [
                (one.variant, said)
                for one, said in replayed_boots(
                    boots, at_once=1, journal=journal, reporter=Reporter()
                )
            ]
        )
        journal.close()
    assert passes[0] == [("a", event), ("a", None), ("b", event), ("b", None)]
    assert passes[1] == passes[0]
    assert booted == ["a", "b"]


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
    rows = named("fork").at("live").rows[:3]
    scarce = {rows[0].name}
    its = replace(LIVE, why_not=lambda row: "memory is short" if row.name in scarce else None)
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
    rows = named("zone-device").at("native").rows
    build = native.Build({}, {"sizeof_page": 64})
    its = Sized(
        needed_bytes=lambda rows, _: sum(row.device_bytes for row in rows) // 64,
        extent_bytes=zone_device.extent_bytes,
        halved=zone_device.halved,
    )
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
