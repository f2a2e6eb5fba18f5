# SPDX-License-Identifier: GPL-2.0-only
"""`ream restore`: restores the settings of this machine that a killed run left changed."""

from collections.abc import Iterator

from ream.settings import JOURNAL, WAIT_S, Say, Setting, SettingsJournal, sole_door, state_dir


def plan_restore() -> Iterator[str]:
    """Yield a command for a root shell for each setting to restore; nothing is changed.

    Raises ReamError if the journal cannot be read.
    """
    left = SettingsJournal.load(state_dir() / JOURNAL)
    if left is None:
        yield "no run left settings changed"
        return
    for entry in reversed(left.entries):
        yield f"{Setting(entry.path, entry.old)}   # if it is still {entry.new}"


def restore_settings(say: Say) -> int:
    """Restore what a killed run left changed, and report it, or that there was nothing to do.

    Returns the exit code, 0. Raises CannotRunHere if a run is still active after WAIT_S, ReamError
    if a value cannot be written or the journal cannot be read. The journal is then kept.
    """
    with sole_door(say=say, recover=False, wait_s=WAIT_S) as door:
        if not door.journal.exists():
            say("no run left settings changed")
        else:
            nr_back = door.recover()
            say(f"{nr_back} put back" if nr_back else "there was nothing to put back")
    return 0
