# SPDX-License-Identifier: GPL-2.0-only
"""Pieces of a run that may have been interrupted: those that are done say again what they said."""

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
    """What `run_boots` yields; of boots in the journal what they said then, and those are first.

    A boot is in the journal when its last event has been dealt with: if that raises, it is not.
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
    """Its console has a name of its own among those of a run."""
    return f"boot {boot.log.stem}"


class Replayed:
    """Replays pieces that write all of their output at once, at their end."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._nr_asked: Counter[str] = Counter()
        self.recalled = False
        """Whether the last piece was in the journal."""

    def recall(self, piece: str, do: Callable[[], str]) -> str:
        """What a piece said; it is done now unless it was. Raises what doing it raises.

        Of two rows that ask for the same, as the two sides of an A/A comparison, each has its own.
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
