# SPDX-License-Identifier: GPL-2.0-only
"""Sorts kernels into kinds by facts in their compiled code. Each kind has its own plan and images.

A series is of another kind than its tree if it changes the layout of a structure, or if it behaves
differently where the specification leaves a choice.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ream.errors import UnhostedVariant
from ream.measure.plan import Launch
from ream.stage.bench import Bench
from ream.stage.hosted import Otherwise, R
from ream.stage.memory import Sized
from ream.stage.native import Build, Facts, read_facts

PAGE = "sizeof.page"


def by_facts(
    bench: Bench, launches: Iterable[Launch], otherwise: Mapping[str, Otherwise]
) -> tuple[Bench, tuple[Build, ...]]:
    """Return the bench with its kernels sorted by kind, and the build of each kind.

    launches: one launch of each program. otherwise: facts that replace a variant's own, by variant.
    """
    addresses: Mapping[str, int] = {}
    facts: dict[str, Facts] = {}
    for launch in launches:
        addresses, its = read_facts(bench.link(launch))
        facts |= its
    kinds: dict[tuple[int, str], Facts] = {}
    kind_of: dict[str, int] = {}
    for name in (name for name in bench.kernels if name in facts):
        own = otherwise[name].over(facts[name]) if name in otherwise else facts[name]
        key = bench.tree_of.get(name, 0), json.dumps(dict(own), sort_keys=True)
        kinds.setdefault(key, own)
        kind_of[name] = [*kinds].index(key)
    sorted_ = {name: number for name, number in kind_of.items() if number}
    return replace(bench, tree_of=sorted_), tuple(Build(addresses, its) for its in kinds.values())


def check_pages(bench: Bench, builds: Sequence[Build]) -> None:
    """Raise UnhostedVariant for the first kernel whose struct page has another size."""
    first = builds[0].facts.get(PAGE)
    for name, number in bench.tree_of.items():
        if (its := builds[number].facts.get(PAGE)) != first:
            said = f"{name}: struct page has {its} bytes; the program around it is written for"
            raise UnhostedVariant(f"{said} {first}", name)


def of_all(sized: Sized[R], builds: Sequence[Build]) -> Sized[R]:
    """Return sizes of rows that are the largest over all builds."""

    def needed_bytes(rows: Sequence[R], build: Build) -> int:
        del build
        return max(sized.needed_bytes(rows, one) for one in builds)

    return replace(sized, needed_bytes=needed_bytes)
