# SPDX-License-Identifier: GPL-2.0-only
"""Merges the two listings of a function into one, in which changes by the series are marked."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from ream.judge.judgement import Listing

_LINE = re.compile(r"\s*(\d*)\s+[0-9a-f]+\s\s(.*)")
_TARGET = re.compile(r"\b[0-9a-f]+ <([^>+]+)\+0x[0-9a-f]+>")
"""The target of a jump, whose address changes with all code before it."""

KEPT, REMOVED, ADDED = " ", "-", "+"
CLASSES = {KEPT: "kept", REMOVED: "removed", ADDED: "added"}


@dataclass(frozen=True)
class Instruction:
    """An instruction of a listing, and how often each kernel executed it."""

    mark: str
    before: str
    after: str
    text: str

    @property
    def kind(self) -> str:
        """The meaning of the mark, in a word."""
        return CLASSES[self.mark]


def side_by_side(its: Listing) -> Iterator[Instruction]:
    """Yield the instructions of both kernels in order; those of only one have a mark."""
    old, new = _instructions(its.before), _instructions(its.after)
    before_keys, after_keys = (
        [_TARGET.sub(r"<\1>", text) for _, text in one] for one in (old, new)
    )
    matched = SequenceMatcher(None, before_keys, after_keys, autojunk=False)
    for tag, a, b, c, d in matched.get_opcodes():
        if tag == "equal":
            for (before, _), (after, text) in zip(old[a:b], new[c:d], strict=True):
                yield Instruction(KEPT, before, after, text)
        else:
            yield from (Instruction(REMOVED, before, "", text) for before, text in old[a:b])
            yield from (Instruction(ADDED, "", after, text) for after, text in new[c:d])


def _instructions(listing: str) -> list[tuple[str, str]]:
    """Return for each instruction how often it was executed, empty for never, and its text."""
    found = ((_LINE.fullmatch(line), line) for line in listing.splitlines())
    return [
        (its[1], " ".join(its[2].split())) if its is not None else ("", line.strip())
        for its, line in found
    ]
