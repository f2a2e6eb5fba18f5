# SPDX-License-Identifier: GPL-2.0-only
"""What can go wrong, one class per exit code; each text is the line the user reads."""

import re

_FAILED = re.compile(r": exit \d+: (.+)")
"""What stands before the words of a tool, see `ream.command.run`."""


class ReamError(Exception):
    """A tool we drive failed; base of every failure we foresaw."""

    exit_code = 6
    is_shown = False
    """Whether standard output has said it, so that a terminal that shows both is not told again."""


class NothingChanges(ReamError):
    """What was to be measured is the same code as what it is compared with; the text says so."""

    exit_code = 0


class ClaimFails(ReamError):
    """A published claim does not hold here, or a change made something slower than allowed."""

    exit_code = 1


class BadUsage(ReamError):
    """The command line, an experiment file or a patch is not usable as given."""

    exit_code = 2


class CannotRunHere(ReamError):
    """This machine lacks something; the text says what, and the way out."""

    exit_code = 3


class Inconclusive(ReamError):
    """The measurement decides neither for nor against; never rounded to a pass."""

    exit_code = 4


class VerificationFailed(ReamError):
    """Memory does not hold what the oracle says it must, or a kernel crashed or never came back."""

    exit_code = 5


class KernelComplained(ReamError):
    """A guest's kernel found a fault of its own; after the first line come the kernel's words."""


class EmulatorGaveUp(ReamError):
    """What emulates a program, or counts it, ended by a defect of its own."""


class StillRunning(ReamError):
    """A program has outlived its deadline, and was ended."""


class VariantFails(ReamError):
    """One variant in a program of several cannot be measured: samples of the others stand."""

    def __init__(self, text: str, variant: str) -> None:
        super().__init__(text)
        self.variant = variant


class WrongVariant(VariantFails, VerificationFailed):
    """The variant left wrong memory, warned, crashed or never came back."""


class UnhostedVariant(VariantFails, CannotRunHere):
    """The variant reached a part of the kernel that the native stage does not provide."""


def shown(error: ReamError) -> ReamError:
    """The same error, to be raised where standard output has said it already."""
    error.is_shown = True
    return error


def kind_of(error: type[ReamError]) -> str:
    """The kind of an error in JSON: the name of its class, as in does-not-apply."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", error.__name__).lower()


def to_object(error: ReamError) -> dict[str, str]:
    """An error in JSON."""
    return {"kind": kind_of(type(error)), "message": str(error)}


def in_a_line(cause: ReamError) -> str:
    """Return what is to be told of an error in a line: of a tool that failed, what it said."""
    said = _FAILED.search(str(cause))
    return said[1] if said else str(cause).splitlines()[0]
