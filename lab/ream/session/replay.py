# SPDX-License-Identifier: GPL-2.0-only
"""Replays the finished pieces of an interrupted run from its journal.

The caller cannot tell replay from measurement, so its checks cover both.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from pydantic import TypeAdapter

from ream.progress import Reporter
from ream.record.journal import Journal
from ream.stage.boots import Boot, run_boots

B = TypeVar("B", bound=Boot)


def replayed_boots(
    boots: Sequence[B], *, at_once: int, journal: Journal, reporter: Reporter
) -> Iterator[tuple[B, object]]:
    """Yield the events of boots as `run_boots` does; boots in the journal are replayed first.

    A boot is complete in the journal after the caller has handled its last event. If that raises,
    the boot is not complete.
    """
    left = []
    for boot in boots:
        if not journal.has(piece := _piece(boot)):
            left.append(boot)
            continue
        says: TypeAdapter[Any] = TypeAdapter(boot.says)
        with reporter.again():
            for said in journal.said(piece):
                yield boot, says.validate_json(said)
            yield boot, None
    for boot, event in run_boots(left, at_once=at_once):
        if event is not None:
            journal.add(_piece(boot), TypeAdapter(boot.says).dump_json(event).decode())
        yield boot, event
        if event is None:
            journal.whole(_piece(boot))


def _piece(boot: Boot) -> str:
    """Name a boot's piece of the journal by its console log, which is unique in a run."""
    return f"boot {boot.log.stem}"


class Replayed:
    """Replays pieces that write all of their output at once, at their end."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._nr_asked: Counter[str] = Counter()
        self.recalled = False
        """Whether the last piece was replayed from the journal."""

    def recall(self, piece: str, do: Callable[[], str]) -> str:
        """Return the output of a piece; do() runs it if it is not in the journal, and may raise.

        If two rows run the same piece, as both sides of an A/A comparison do, each has an entry.
        """
        self._nr_asked[piece] += 1
        if (again := self._nr_asked[piece]) > 1:
            piece = f"{piece}, asked for the {again}. time"
        self.recalled = self._journal.has(piece)
        if self.recalled:
            said: str = json.loads(self._journal.said(piece)[0])
            return said
        said = do()
        self._journal.add(piece, json.dumps(said))
        self._journal.whole(piece)
        return said
