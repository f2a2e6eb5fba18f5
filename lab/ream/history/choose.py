# SPDX-License-Identifier: GPL-2.0-only
"""Selects earlier runs by experiment, stage, time, machine, row and variant."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ream.errors import BadUsage, CannotRunHere
from ream.history.entry import HistoryEntry, started
from ream.record.identity import machine_id

THIS = "this"
"""The word for the machine that ream runs on."""

_AGO = re.compile(r"(\d{1,6})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


@dataclass(frozen=True)
class Choice:
    """A filter of runs. A field that is None accepts every run."""

    experiment: str | None = None
    stage: str | None = None
    since: datetime | None = None
    machine: str | None = None
    """The beginning of a machine's id."""
    variant: str | None = None
    row: str | None = None

    def takes(self, entry: HistoryEntry) -> bool:
        """Whether the filter accepts this run."""
        return (
            self.experiment in (None, entry.experiment)
            and self.stage in (None, entry.stage)
            and (self.machine is None or entry.machine.startswith(self.machine))
            and self._is_recent(entry)
            and bool(self.rows(entry) or (self.row is None and self.variant is None))
        )

    def rows(self, entry: HistoryEntry) -> tuple[str, ...]:
        """The names of those rows of a run that the filter accepts."""
        return tuple(
            name
            for name, row in entry.rows.items()
            if self.row in (None, name) and (self.variant is None or self.variant in row.variants)
        )

    def _is_recent(self, entry: HistoryEntry) -> bool:
        if self.since is None:
            return True
        began = started(entry.run)
        return began is not None and began >= self.since


def chosen(
    entries: Iterable[HistoryEntry], choice: Choice, limit: int | None = None
) -> list[HistoryEntry]:
    """The accepted entries in their order; limit: at most this many, from the first on."""
    found = [entry for entry in entries if choice.takes(entry)]
    return found if limit is None else found[:limit]


def parse_since(text: str, now: datetime | None = None) -> datetime:
    """Parse an ISO 8601 day or time, in UTC by default, or an age such as 12h, 3d or 2w.

    Raises BadUsage if the text is none of these.
    """
    if ago := _AGO.fullmatch(text.strip()):
        try:
            return (now or datetime.now(UTC)) - int(ago[1]) * _UNITS[ago[2]]
        except OverflowError:
            return datetime.min.replace(tzinfo=UTC)
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError as cause:
        raise BadUsage(
            f"--since {text!r}: neither a day (2026-11-21), a moment (2026-11-21T10:00), "
            "nor how long ago (12h, 3d, 2w)"
        ) from cause
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def parse_machine(text: str) -> str:
    """The machine's id; raises CannotRunHere for `this` on a machine without one."""
    if text != THIS:
        return text
    if (own := machine_id()) is None:
        raise CannotRunHere(
            "--machine this: /etc/machine-id is empty or not there; `systemd-machine-id-setup` "
            "makes one"
        )
    return own
