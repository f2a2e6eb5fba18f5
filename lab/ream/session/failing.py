# SPDX-License-Identifier: GPL-2.0-only
"""Handles variants that fail. Permitted other behaviour is tried first; other variants go on."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ream.errors import UnhostedVariant, VariantFails, WrongVariant
from ream.progress import Reporter
from ream.record.journal import Journal
from ream.session.request import Request
from ream.stage.hosted import Otherwise, programs_of

WRONG, UNHOSTED = "wrong", "unhosted"
"""Keys in the journal of variants that are left out, each with its error."""

_OTHERWISE = "otherwise"
"""Key in the journal: by variant, the index of the permitted other behaviour that it is checked
against, and the error of the check against its tree's behaviour."""


def failures(journal: Journal, kind: str) -> dict[str, str]:
    """Return the errors of variants that were left out as WRONG or UNHOSTED, by variant."""
    return dict(journal.settled(kind) or {})


def leave_out(error: VariantFails, request: Request, journal: Journal, reporter: Reporter) -> None:
    """Stop measuring a variant; raises an error if no given variant is left."""
    kind = UNHOSTED if isinstance(error, UnhostedVariant) else WRONG
    before = {**failures(journal, WRONG), **failures(journal, UNHOSTED)}
    given = _given(request)
    # A variant that is left out already is in no launch. An error that blames it would repeat.
    if error.variant in before or error.variant not in given or given <= {*before, error.variant}:
        raise _worst({**before, error.variant: str(error)}, error, failures(journal, WRONG))
    journal.note(kind, {**failures(journal, kind), error.variant: str(error)})
    reporter.step(f"{error.variant} is {kind} and is left out: {error}")


def _given(request: Request) -> set[str]:
    return {variant.name for variant in request.variants if variant.given}


def _worst(failed: Mapping[str, str], last: VariantFails, wrong: Mapping[str, str]) -> VariantFails:
    """Return the error of a run whose variants all failed: a wrong variant's, if there is one."""
    error = last
    if wrong and isinstance(last, UnhostedVariant):
        name, what = next(iter(wrong.items()))
        error = WrongVariant(what, name)
    for name, what in failed.items():
        if name != error.variant:
            error.add_note(f"and {name}: {what}")
    return error


# --- Permitted other behaviour ---------------------------------------------------------


def _ways(request: Request) -> list[Otherwise]:
    """Return what series may do differently from their trees, in any program of the experiment."""
    found = (way for its in programs_of(request.experiment) for way in its.otherwise)
    return list(dict.fromkeys(found))


def _held(journal: Journal) -> dict[str, Any]:
    return dict(journal.settled(_OTHERWISE) or {})


def otherwise(request: Request, journal: Journal) -> dict[str, Otherwise]:
    """Return the behaviour that replaces a tree's facts in checks, by variant."""
    ways = _ways(request)
    return {
        name: ways[its["way"]] for name, its in _held(journal).items() if its["way"] < len(ways)
    }


def try_otherwise(
    error: VariantFails, request: Request, journal: Journal, reporter: Reporter
) -> bool:
    """Check a wrong variant against the behaviour of newer kernels next; return whether to go on.

    If all of these fail, the variant is left out, or the first WrongVariant is raised if no other
    variant is left.
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
    """Yield what correct variants do differently from their trees."""
    for name, way in otherwise(request, journal).items():
        if name not in failed:
            yield f"{name}: it {way}, which its tree does not"
