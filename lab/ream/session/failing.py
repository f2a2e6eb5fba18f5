# SPDX-License-Identifier: GPL-2.0-only
"""Variants that fail: the others are measured all the same, and what is open is tried first."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ream.errors import UnhostedVariant, VariantFails, WrongVariant
from ream.progress import Reporter
from ream.record.journal import Journal
from ream.session.request import Request
from ream.stage.hosted import Otherwise, programs_of

WRONG, UNHOSTED = "wrong", "unhosted"
"""In the journal: variants that are left out, and what each did."""

_OTHERWISE = "otherwise"
"""In the journal: by variant, which of the ways that are open it is held against, and what was
wrong when it was held against its tree's."""


def failures(journal: Journal, kind: str) -> dict[str, str]:
    """What each variant did that was left out as WRONG or UNHOSTED."""
    return dict(journal.settled(kind) or {})


def leave_out(error: VariantFails, request: Request, journal: Journal, reporter: Reporter) -> None:
    """Settle that a variant is not measured any more; raises an error if that leaves nothing."""
    kind = UNHOSTED if isinstance(error, UnhostedVariant) else WRONG
    before = {**failures(journal, WRONG), **failures(journal, UNHOSTED)}
    given = _given(request)
    # One that is left out already is in no launch: who accuses it would do so for ever.
    if error.variant in before or error.variant not in given or given <= {*before, error.variant}:
        raise _worst({**before, error.variant: str(error)}, error, failures(journal, WRONG))
    journal.note(kind, {**failures(journal, kind), error.variant: str(error)})
    reporter.step(f"{error.variant} is {kind} and is left out: {error}")


def _given(request: Request) -> set[str]:
    return {variant.name for variant in request.variants if variant.given}


def _worst(failed: Mapping[str, str], last: VariantFails, wrong: Mapping[str, str]) -> VariantFails:
    """The error that a run ends with whose variants all failed: one that is wrong, if any is."""
    error = last
    if wrong and isinstance(last, UnhostedVariant):
        name, what = next(iter(wrong.items()))
        error = WrongVariant(what, name)
    for name, what in failed.items():
        if name != error.variant:
            error.add_note(f"and {name}: {what}")
    return error


# --- What is open ----------------------------------------------------------------------


def _ways(request: Request) -> list[Otherwise]:
    """What series may do otherwise than their trees, in any program of the experiment."""
    found = (way for its in programs_of(request.experiment) for way in its.otherwise)
    return list(dict.fromkeys(found))


def _held(journal: Journal) -> dict[str, Any]:
    return dict(journal.settled(_OTHERWISE) or {})


def otherwise(request: Request, journal: Journal) -> dict[str, Otherwise]:
    """By variant, what it is held against in the place of its tree's facts."""
    ways = _ways(request)
    return {
        name: ways[its["way"]] for name, its in _held(journal).items() if its["way"] < len(ways)
    }


def try_otherwise(
    error: VariantFails, request: Request, journal: Journal, reporter: Reporter
) -> bool:
    """Settle that a variant which is wrong is held against what newer kernels do; whether it is.

    Where none of that is met either, raises WrongVariant as it was at first unless others are left,
    which are measured without it.
    """
    ways, held, name = _ways(request), _held(journal), error.variant
    if not isinstance(error, WrongVariant) or name not in _given(request):
        return False
    its = held.get(name, {"way": -1, "first": str(error)})
    if its["way"] >= len(ways) or not ways:
        return False
    its = {**its, "way": its["way"] + 1}
    journal.note(_OTHERWISE, {**held, name: its})
    if its["way"] < len(ways):
        reporter.step(f"{name}: {str(error).splitlines()[0]}; trying whether it {ways[its['way']]}")
    else:
        leave_out(WrongVariant(its["first"], name), request, journal, reporter)
    return True


def otherwise_words(request: Request, journal: Journal, failed: Collection[str]) -> Iterator[str]:
    """What variants that are right do otherwise than their trees."""
    for name, way in otherwise(request, journal).items():
        if name not in failed:
            yield f"{name}: it {way}, which its tree does not"
