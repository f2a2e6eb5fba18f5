# SPDX-License-Identifier: GPL-2.0-only
"""`ream restore`: settings of this machine as they were before a run that was killed."""

from ream.settings import Say, sole_door


def restore_settings(say: Say) -> int:
    """Put back what a killed run left changed; say what, or that there was nothing to do.

    Returns the exit code, 0. Raises CannotRunHere if a run is under way, ReamError if a value
    cannot be written or the journal cannot be read; the journal stays then.
    """
    with sole_door(say=say, recover=False) as door:
        if not door.journal.exists():
            say("no run left settings changed")
        else:
            nr_back = door.recover()
            say(f"{nr_back} put back" if nr_back else "there was nothing to put back")
    return 0
