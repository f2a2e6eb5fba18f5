# SPDX-License-Identifier: GPL-2.0-only
"""Everything that can be done with a mapping, at its edges and in random mixtures."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypedDict

from ream.oracle.mapping import Mapping
from ream.oracle.meaning import is_arm64
from ream.stage.hosted import Batch, some
from ream.stage.native import Build

from .oracle.cases import correctness_mappings
from .oracle.fork import fork, zap
from .oracle.images import NO_RSS, State, initial
from .oracle.mixture import random_mapping
from .plan import Case, Step, case_of, place_of, written_plan

MAPPINGS_A_LAUNCH = 8
"""Some hundred files each, with all that is done with them; a process may have 1024 open."""

Who = Literal["parent", "child"]


class _Details(TypedDict):
    drop_markers: bool
    even_cows: bool


def _details(step: Step) -> _Details:
    """Arguments of zap() for a step, besides the process."""
    return {"drop_markers": step not in {"discard", "truncate"}, "even_cows": step != "truncate"}


def story(name: str, mapping: Mapping, build: Build) -> Iterator[Case]:
    """Everything that can be done with a mapping, once in each state that it can be in.

    Of each, what a kernel leaves that takes entries in batches, and one that takes them one by
    one; both begin with the same memory.
    """
    facts = build.facts

    def forked(state: State, *, batched: bool = True) -> State:
        return fork(mapping, state, facts, batched=batched)

    def without(step: Step, state: State, who: Who, *, batched: bool = True) -> State:
        return zap(mapping, state, who, facts, **_details(step), batched=batched)

    fresh = initial(mapping, facts, place_of(build))
    both = forked(fresh)
    apart = replace(both, child=None, child_rss=NO_RSS)
    parent_left, child_left = without("unmap", both, "child"), without("unmap", both, "parent")
    acts: tuple[tuple[str, Step, State, Who | None], ...] = (
        ("fork", "copy", fresh, None),
        ("second-child", "copy", apart, None),
        ("refork", "copy", parent_left, None),
        ("never-forked-unmap", "unmap", fresh, "parent"),
        ("never-forked-exit", "exit", fresh, "parent"),
        ("never-forked-discard", "discard", fresh, "parent"),
        ("never-forked-truncate", "truncate", fresh, "parent"),
        ("fork-on-a-busy-cpu", "copy", fresh, None),
        ("overlapped-unmap", "unmap", fresh, "parent"),
        ("parent-first-unmap", "unmap", both, "parent"),
        ("parent-first-exit", "exit", both, "parent"),
        ("child-first-unmap", "unmap-child", both, "child"),
        ("child-first-exit", "exit-child", both, "child"),
        ("child-last-unmap", "unmap-child", child_left, "child"),
        ("child-last-exit", "exit-child", child_left, "child"),
        ("parent-last-unmap", "unmap", parent_left, "parent"),
        ("parent-last-exit", "exit", parent_left, "parent"),
    )
    for act, step, before, who in acts:
        if step == "truncate" and mapping.anonymous:
            continue  # no file that could be
        after, single = (
            without(step, before, who, batched=batched) if who else forked(before, batched=batched)
            for batched in (True, False)
        )
        yield case_of(
            f"{name}/{act}",
            mapping,
            step,
            facts=facts,
            before=before,
            after=after,
            single=single,
            busy=act == "fork-on-a-busy-cpu",
            overlapped=act == "overlapped-unmap",
        )


def cases(build: Build, work: Path, seeds: Iterable[int], *, edges: bool) -> Iterator[Batch]:
    named = correctness_mappings().items() if edges else ()
    mappings = [(name, one) for name, one in named if not one.missing_facts(build.facts)]
    mappings += ((f"mixture-{seed}", random_mapping(seed)) for seed in seeds)
    if is_arm64(build.facts):
        mappings += [(f"{name}-cont", replace(one, folded=True)) for name, one in mappings]
    for its in some(mappings, MAPPINGS_A_LAUNCH):
        told = (case for name, mapping in its for case in story(name, mapping, build))
        yield written_plan(told, work), 0
