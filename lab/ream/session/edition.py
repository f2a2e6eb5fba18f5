# SPDX-License-Identifier: GPL-2.0-only
"""Selects the variants of a run that apply to its kernel tree."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ream.experiment import Experiment
from ream.kernel.series import Patch
from ream.session.request import Request
from ream.variants import Suited, editions, suited_to


def of_tree(
    request: Request, version: str, attempt: Callable[[Sequence[Patch]], object]
) -> tuple[Request, tuple[str, ...]]:
    """Return the run with the variants that apply to its tree, and a line on each other variant.

    The variants are those of the nearest base whose series all apply or, if there is none, of the
    base with the most that apply. version: the tree's version. attempt: see `suited_to`.
    A run of the default kernel, or of variants that the user chose, is not changed.
    """
    if request.tree is None or request.asked:
        return request, ()
    best: tuple[Experiment, Suited] | None = None
    for experiment, suited in _suited(request, version, attempt):
        if best is None or len(suited.notes) < len(best[1].notes):
            best = experiment, suited
        if not suited.notes:
            break
    assert best is not None  # the default base is among the editions
    experiment, suited = best
    return replace(request, experiment=experiment, variants=suited.variants), suited.notes


def _suited(
    request: Request, version: str, attempt: Callable[[Sequence[Patch]], object]
) -> Iterator[tuple[Experiment, Suited]]:
    if request.choose is None:
        yield request.experiment, suited_to(request.variants, attempt)
        return
    for experiment in editions(request.experiment, version):
        yield experiment, suited_to(request.choose(experiment), attempt)
