# SPDX-License-Identifier: GPL-2.0-only
"""Boots that boot nothing, for what a journal holds of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ream.progress import Reporter
from ream.record.journal import JOURNAL, Journal
from ream.session.replay import replayed_boots
from ream.stage.boots import Boot
from ream.stage.vm import Start


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


def assert_says_again(kind: type[Boot], event: object, tmp_path: Path) -> None:
    """A boot of a kind that is done says from the journal what it said, and is not booted again."""
    booted = list[str]()
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
