# SPDX-License-Identifier: GPL-2.0-only
"""Finds the differences between two sides, and whether the rules refuse a comparison for them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from ream.compare.rules import HOW, OF_RECORDS, REMEDY, RULES, Gravity, Question
from ream.counted import counted
from ream.errors import BadUsage
from ream.experiment import shown_in

SHORT = 12
"""The number of digits of a digest that are printed."""

MOST_SAID = 3
"""The most differences that a refusal lists: each pair of ten runs may have its own."""

MOST_PATCHES = 4
"""The most patches of a series that are named by their numbers."""


@dataclass(frozen=True, order=True)
class Thing:
    """One property of a side, or of one of its rows or variants."""

    rule: str
    of: str = ""
    """The name of the row or variant; empty for the side as a whole."""
    name: str = ""
    """The name of a parameter; other properties are named after their rule."""

    def __str__(self) -> str:
        name = self.name or self.rule
        return f"{name} of {self.of}" if self.of else name

    @property
    def row(self) -> str | None:
        """The row that the property belongs to; None if it belongs to no single row."""
        return None if self.rule == "series" else self.of or None


Facts = Mapping[Thing, object]
"""The properties of a side. A property that it does not know is absent. None means that the side
has the property without a value."""


@dataclass(frozen=True)
class Named:
    """A value that is compared by its key and printed as other words."""

    key: object
    words: str = field(compare=False)

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class SeriesIds:
    """The series of a variant, in order, each with a digest of its mails and one of its diffs."""

    ids: tuple[tuple[str, str | None], ...]
    """The digest of diffs is None in records from before it was introduced."""
    patches: tuple[tuple[str, str | None], ...] = field(default=(), compare=False)
    """The same digests of every patch of all series, in order; empty if they are not known."""

    def same_as(self, other: "SeriesIds") -> bool:
        """Whether both are the same code, judged by diffs if both have them, else by mails."""
        return [*_same_kind(self.ids, other.ids)] == [*_same_kind(other.ids, self.ids)]

    def patches_that_differ(self, other: "SeriesIds") -> str:
        """How the patches differ, in words; empty if the patches of one side are not known."""
        ours, theirs = (
            [*_same_kind(one, another)]
            for one, another in ((self.patches, other.patches), (other.patches, self.patches))
        )
        if not ours or not theirs:
            return ""
        if len(ours) != len(theirs):
            same = len(set(ours) & set(theirs))
            return f"{counted(same, 'patch', 'patches')} of {len(ours)} and {len(theirs)} the same"
        pairs = enumerate(zip(ours, theirs, strict=True), start=1)
        changed = [str(number) for number, (one, another) in pairs if one != another]
        if len(ours) == 1:
            return "its one patch differs"
        if len(changed) == 1:
            return f"patch {changed[0]} of {len(ours)} differs"
        which = f"patches {', '.join(changed)}" if len(changed) <= MOST_PATCHES else len(changed)
        return f"{which} of {len(ours)} differ"

    def __str__(self) -> str:
        return " + ".join(one[:SHORT] for one, _ in self.ids) or "no series"


@dataclass(frozen=True)
class Difference:
    """One property in which two sides differ, and whether that refuses the comparison."""

    thing: Thing
    a: str
    b: str
    gravity: Gravity
    how: str = ""
    """What differs, in words; empty if the two values say it."""

    @property
    def what(self) -> str:
        """The name of the property."""
        return str(self.thing)

    @property
    def refuses(self) -> bool:
        """Whether the difference refuses the comparison."""
        return self.gravity == "refuse"

    def said(self, where_a: str = "in one", where_b: str = "in the other") -> str:
        """The difference in words; where_a, where_b: phrases for the two sides."""
        if self.a == self.b:
            return f"{self.what}: {self.a} in either"
        if self.how and self.thing.rule == "series":
            return f"{self.what}: {self.how}"
        values = f"{self.a} {where_a}, {self.b} {where_b}"
        return f"{self.what}: {self.how} (ids: {values})" if self.how else f"{self.what}: {values}"


def differences(question: Question, a: Facts, b: Facts) -> tuple[Difference, ...]:
    """All properties in which two sides differ, those that refuse the question first."""
    return tuple(sorted(_differences(question, a, b), key=lambda one: not one.refuses))


def check(question: Question, a: Facts, b: Facts, *, sides: tuple[str, str], head: str) -> None:
    """Raise BadUsage with a line, after `head`, for each property that refuses the question."""
    if found := [one for one in differences(question, a, b) if one.refuses]:
        raise BadUsage("\n".join(f"{head}: {one.said(*sides)}" for one in found))


def check_all(question: Question, sides: Sequence[tuple[str, Facts]], way_out: str) -> None:
    """Raise BadUsage if any two of the named sides must not be compared.

    The message lists the differences, explains them, and ends with `way_out`. Of equal sides only
    the first is named.
    """
    said = {
        f"{name} and {other} are not alike: {shown_in(one.said())}": one
        for (name, a), (other, b) in combinations(told_apart(question, sides), 2)
        for one in differences(question, a, b)
        if one.refuses
    }
    if said:
        more = len(said) - MOST_SAID
        rest = [f"and {counted(more, 'more difference')} of this kind"] if more > 0 else []
        rest += remedies(said.values())
        raise BadUsage("\n".join((*list(said)[:MOST_SAID], *rest, way_out)))


def remedies(found: Iterable[Difference]) -> Iterator[str]:
    """What each kind of difference does to ratios and how to rule it out, in whole sentences."""
    rules = dict.fromkeys(one.thing.rule for one in found)
    return (REMEDY[rule] for rule in rules if rule in REMEDY)


def told_apart(
    question: Question, sides: Sequence[tuple[str, Facts]]
) -> tuple[tuple[str, Facts], ...]:
    """The first side of each group whose relevant properties are equal."""
    kinds: dict[str, tuple[str, Facts]] = {}
    for name, facts in sides:
        asked = {one: value for one, value in facts.items() if RULES[one.rule].gravity(question)}
        kinds.setdefault(repr(sorted(asked.items(), key=lambda one: one[0])), (name, facts))
    return tuple(kinds.values())


def _differences(question: Question, a: Facts, b: Facts) -> Iterator[Difference]:
    order = list(RULES)
    doubted = [Thing(name) for name, rule in RULES.items() if rule.unsaid == "doubt"]
    rows = [{thing.row for thing in side} for side in (a, b)]
    machine = Thing("machine")
    same_machine = _same(a.get(machine), b.get(machine))
    for thing in sorted({**a, **b, **dict.fromkeys(doubted)}, key=lambda it: order.index(it.rule)):
        rule = RULES[thing.rule]
        gravity = rule.gravity(question)
        if gravity is None or (rule.of_machine and not same_machine):
            continue
        doubt = False
        if question in OF_RECORDS and not (thing in a and thing in b):
            if rule.unsaid == "skip" or not all(thing.row in its | {None} for its in rows):
                continue
            gravity = "flag" if rule.unsaid in ("flag", "doubt") else gravity
            doubt = rule.unsaid == "doubt"
        if doubt or not _same(a.get(thing), b.get(thing)):
            one, other = a.get(thing), b.get(thing)
            how = _how(thing, one, other)
            yield Difference(thing, _said(one), _said(other), gravity, how)


def _how(thing: Thing, one: object, other: object) -> str:
    if isinstance(one, SeriesIds) and isinstance(other, SeriesIds):
        return one.patches_that_differ(other)
    return "" if one is None or other is None else HOW.get(thing.rule, "")


def _same_kind(
    ours: Sequence[tuple[str, str | None]], theirs: Sequence[tuple[str, str | None]]
) -> Iterator[str | None]:
    """The digests of diffs if both sides have all of them, else those of mails; of our side."""
    at = int(all(diff is not None for _, diff in (*ours, *theirs)))
    return (one[at] for one in ours)


def _same(one: object, other: object) -> bool:
    if isinstance(one, SeriesIds) and isinstance(other, SeriesIds):
        return one.same_as(other)
    # To Python, true is 1.
    return one == other and isinstance(one, bool) is isinstance(other, bool)


def _said(value: object) -> str:
    return "not said" if value is None else str(value)
