# SPDX-License-Identifier: GPL-2.0-only
"""Counts of a whole kernel in a guest: what its functions do between two marks of a program."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from ream.count.counter import OF_MEMORY, Numbers, add_counts
from ream.count.emulator import plugin_words
from ream.count.places import source_name
from ream.errors import ReamError
from ream.measure.sample import Sample
from ream.stage.fault import Function, functions
from ream.values import Value


class Counted(Value):
    """What a kernel did in one sample of a guest."""

    functions: dict[str, Numbers]
    """Counts by function and quantity. Functions of the same name in several files are added up.
    Modules, and code outside of functions such as the entry of system calls, are left out."""
    memory: dict[str, int]
    """The numbers of distinct cache lines and pages that these functions touched."""


@dataclass(frozen=True)
class KernelCounter:
    """QEMU's plugin together with the kernel whose functions it counts."""

    plugin: Path
    listed: Path
    """The file in which the plugin finds the functions' addresses."""
    names: tuple[str, ...]
    """The function's name in the source, for each line of `listed`."""

    def words(self, out: Path) -> tuple[str, ...]:
        """Return the options for QEMU; out: the file that the plugin writes."""
        # Interrupts and other tasks may run between a call and its return.
        return plugin_words(self.plugin, {"functions": self.listed, "out": out, "inclusive": "off"})

    def counted(self, out: Path, window: int) -> Counted:
        """Return the counts of a window that a program named; raises ReamError if there is none."""
        named = f'"name": {window},'
        with out.open() as lines:
            line = next((text for text in lines if named in text), None)
        if line is None:
            raise ReamError(f"{out}: the plugin has not counted a sample named {window}")
        found = json.loads(line)
        counts: dict[str, Numbers] = {}
        for number, *values in found["functions"]:
            add_counts(counts, self.names[number], values)
        return Counted(functions=counts, memory={name: found[name] for name in OF_MEMORY})


def kernel_counter(plugin: Path, vmlinux: Path, listed: Path) -> KernelCounter:
    """Return the counter of a kernel at its link address, and write the list that it needs."""
    found = tuple(_places(functions(vmlinux)))
    names = tuple(source_name(one.name) for one in found)
    first: dict[str, int] = {}
    for number, name in enumerate(names):
        first.setdefault(name, number)
    listed.write_text(
        "".join(
            f"{one.start:x} {one.start + one.bytes:x} 1 {first[name]}\n"
            for one, name in zip(found, names, strict=True)
        )
    )
    return KernelCounter(plugin, listed, names)


def _places(found: Iterable[Function]) -> Iterable[Function]:
    """Return functions by address, each cut where the next begins; the longest of aliases."""
    longest: dict[int, Function] = {}
    for one in sorted(found, key=lambda one: (one.start, one.bytes, one.name)):
        if one.bytes:
            longest[one.start] = one
    for one, following in zip_longest(longest.values(), [*longest][1:]):
        room = one.bytes if following is None else following - one.start
        yield replace(one, bytes=min(one.bytes, room))


def together(parts: Iterable[Counted | None]) -> Counted | None:
    """Add the counts of several windows of one sample; None if nothing was counted.

    Lines and pages that two windows touched are counted twice.
    """
    found = [part for part in parts if part is not None]
    if not found:
        return None
    functions: dict[str, Counter[str]] = defaultdict(Counter)
    memory: Counter[str] = Counter()
    for part in found:
        memory.update(part.memory)
        for name, numbers in part.functions.items():
            functions[name].update(numbers)
    return Counted(
        functions={name: dict(its) for name, its in functions.items()}, memory=dict(memory)
    )


def with_counts(sample: Sample, counted: Counted | None) -> Sample:
    """The sample with its counts; the same sample if nothing was counted."""
    if counted is None:
        return sample
    beside = {**sample.beside, **counted.memory}
    return replace(sample, functions=counted.functions, beside=beside)
