# SPDX-License-Identifier: GPL-2.0-only
"""Varies a short program: steps before and behind those that it has, and other values in them.

The computer is made small, since checking all of its memory is most of what a short program takes.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ream.program.drawing import FILE_PAGES
from ream.program.drawn_spaces import ANON, SHARED, WRITABLE
from ream.program.generate import MIXTURES, Drawn
from ream.program.kinds import Number, Place, Range, Value, Word, Words
from ream.program.knobs import CALLS, CALLS_ON_PAGES, FILES
from ream.program.scene import Misplaced, Scene, without_misplaced
from ream.program.step import Program, Step, new_step
from ream.program.text import parse

SMALL, WITH_SECTIONS = (64 << 20, 32 << 20), (128 << 20, 128 << 20)
"""Memory of the nodes, in bytes. What is taken out is a section of 128 MiB."""
MOST_IN_SMALL = 8192
"""Pages of all mappings of a program that runs with as little memory."""
_HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/"
_AS_LARGE = (
    ("enabled", "madvise"), ("defrag", "madvise"), ("use_zero_page", "1"),
    ("khugepaged/defrag", "1"),
)  # fmt: skip
"""The kernel turns huge pages off where memory is as small; so they are as they are elsewhere."""
_FILES = (("f", "shmem"), ("h", "huge"), ("d", "disk"), ("m", "shmem"), ("l", "large"),
          ("t", "hugetlb"), ("b", "blocks"))  # fmt: skip
"""Files that mixtures use."""
MOST_CHANGES = 4
MOST_DRAWN = 14
"""Steps that one mixture may add."""


def small(program: Program) -> Program:
    """The same steps on a computer with little memory; what they need is still there."""
    takes_out = any(step.get("function") == "offline" for step in program)
    nr = sum(step.number("nr") for step in program if step.verb in {"mmap", "hog"})
    nodes = enumerate(WITH_SECTIONS if takes_out or nr > MOST_IN_SMALL else SMALL)
    sizes = {f"node{at}": nr for at, nr in nodes}
    sets = [new_step("set", file=_HUGE_PAGES + name, value=value) for name, value in _AS_LARGE]
    steps = [one for one in program if one.verb != "memory" and one not in sets]
    at = sum(one.form.declares for one in steps)
    return _as_text([new_step("memory", **sizes), *steps[:at], *sets, *steps[at:]])


def varied(dice: random.Random, seed: Program, weights: Mapping[str, int]) -> Program:
    """Change a program in some places, rather near its end, and look at what it leaves."""
    program = _watched_closely(dice, _with_declared(dice, seed))
    for _ in range(1 + dice.randrange(MOST_CHANGES)):
        steps = program.steps
        first = _first_that_acts(steps)
        near_end = max(first, len(steps) - dice.choice((0, 0, 1, 1, 2)))
        at = near_end if dice.randrange(3) else dice.randint(first, len(steps))
        match dice.randrange(11):
            case 10:
                steps = _moved(steps, at)
            case 0:
                order = dice.choice((None, None, 1, 2, 4, 9))
                steps = (*steps[:at], _failing(dice, order), *steps[at:])
            case 1 if at > first:
                steps = (*steps[:at], *steps[at - 1 :])
            case 2 | 3:
                steps = _with_other(dice, steps, at)
            case 4 | 5:
                drawn = _drawn(dice, steps[:at], weights, steps[at:])
                steps = (*drawn, *steps[at:])
            case _:
                drawn = _drawn(dice, steps[:at], _STATES, steps[at:])
                steps = (*drawn, *steps[at:])
        program = without_misplaced(Program(steps))
    steps = program.steps
    if dice.randrange(3) == 0:  # and with them what large folios are on lists for
        steps = (*steps, new_step("set", file="/proc/sys/vm/drop_caches", value="2"))
    drawn = _drawn(dice, steps, dict.fromkeys(dice.sample(_REVEALING, 2), 1))
    return _as_text(_without_unused(drawn))


def _moved(steps: tuple[Step, ...], at: int) -> tuple[Step, ...]:
    """Move the area of the step before a place first, which later steps use where it is then."""
    step = steps[at - 1] if at else steps[0]
    chosen = step.get("area")
    scene = Scene()
    for one in steps[: at - 1]:
        scene.calls(one)
    areas = scene.spaces[step.process].areas if step.process in scene.spaces else {}
    if not isinstance(chosen, Range) or chosen.name not in areas:
        return steps
    old, new = chosen.name, f"{chosen.name}m"
    nr = areas[old].nr
    move = new_step("mremap", step.process, area=Range(old), target=Place(new), new_nr=nr)
    return (*steps[: at - 1], move, *(_with_name(one, old, new) for one in steps[at - 1 :]))


def _with_name(step: Step, old: str, new: str) -> Step:
    """The step on an area of another name."""
    values: list[tuple[str, Value]] = []
    for name, its in step.values:
        if isinstance(its, Range | Place) and its.name == old:
            values.append((name, replace(its, name=new)))
        else:
            values.append((name, its))
    return replace(step, values=tuple(values))


_STATES = {
    "pageout": 5, "fork": 4, "deform": 4, "place": 4,
    **dict.fromkeys(("read", "write", "uffd-wp", "split", "swap-in-part"), 3),
    **dict.fromkeys(("collapse", "break", "soft-dirty", "hint", "migrating", "pin", "mprotect"), 2),
    **dict.fromkeys(("willneed", "cold", "free", "dontneed", "write-same", "merge", "mlock",
                     "munmap", "mremap", "share-in-part", "twins", "split-entry", "age", "window",
                     "upgrade", "compact-around", "on-device",
                     "reclaim", "swap", "compact", "hog", "mthp", "uffd-keep", "large-folios",
                     "fail-early", "compress", "wait", "write-one"), 1),
}  # fmt: skip
"""Mixtures after which pages, entries and folios are in another state, and how often each is drawn.
"""
_REVEALING = ("read", "write", "munmap", "fork", "reclaim", "swap", "place", "look", "split",
              "collapse", "pageout", "mprotect")  # fmt: skip
"""Mixtures that come upon what earlier steps have left."""


def _first_that_acts(steps: Sequence[Step]) -> int:
    """The place of the first step behind declarations and swap areas."""
    return sum(one.form.declares or one.verb == "swap" for one in steps)


def _failing(dice: random.Random, order: int | None) -> Step:
    return new_step("fail", nr=1 + dice.randrange(6 if order is None else 2), order=order)


def _watched_closely(dice: random.Random, program: Program) -> Program:
    """Let rules look at more: what is soft-dirty, what a device uses, what a child is told of."""
    steps = list(program.steps)
    first = _first_that_acts(steps)
    for step in (
        new_step("call", 0, function="clear_refs", x=4),
        new_step("device", 0),
        new_step("join", 0, group="g"),
        new_step("call", 0, function=dice.choice(("uffd_events", "uffd_present"))),
    ):
        if dice.randrange(5) == 0:
            is_free = step.get("function") == "clear_refs" or step.verb == "device"
            at = dice.randint(first, len(steps)) if is_free else first
            steps.insert(at, step)
    return without_misplaced(Program(tuple(steps)))


def _drawn(
    dice: random.Random,
    steps: Sequence[Step],
    weights: Mapping[str, int],
    next_: Sequence[Step] = (),
) -> tuple[Step, ...]:
    """The steps, and those of one mixture or two behind them, rather on pages of the next one."""
    drawn = Behind(dice, weights)
    for step in steps:
        drawn.follow(step)
    for _ in range(1 + dice.randrange(2)):
        nr = len(drawn.steps)
        try:
            drawn.go_on(next_[0] if next_ and dice.randrange(3) else None)
        except (Misplaced, KeyError, IndexError, ValueError):  # it needs what is not there
            del drawn.steps[nr:]
            break
        added = min(MOST_DRAWN, len(drawn.steps) - nr)
        if added and dice.randrange(3) == 0:  # what comes next is to meet it in the middle
            added = 1 + dice.randrange(added)
        del drawn.steps[nr + added :]
    return tuple(drawn.steps)


class Behind(Drawn):
    """Draws what comes behind steps that are there."""

    def follow(self, step: Step) -> None:
        """Note a step that is there, and what is mapped after it."""
        self.scene.calls(step)
        self.steps.append(step)
        process = step.process
        if step.verb == "fork":
            self.mapped[step.number("child")] = bytearray(self.mapped.get(process or 0, b""))
        if process not in self.scene.spaces:
            return
        if step.verb == "mmap":
            is_shared = step.word("sharing") == "shared"
            area = self.scene.spaces[process].areas[step.word("name")]
            writable = WRITABLE if step.word("protection") == "rw" else 0
            self.put(process, area, (SHARED if is_shared else ANON) | writable)
        chosen = step.get("area")
        if isinstance(chosen, Range) and chosen.name in self.scene.spaces[process].areas:
            whole = Range(chosen.name, 0, self.scene.spaces[process].areas[chosen.name].nr)
            self.recent = [*self.recent[-5:], whole if chosen.begin is None else chosen]
            if step.verb == "munmap":
                self.put(process, self.scene.spaces[process].pages(chosen), 0)

    def go_on(self, next_: Step | None) -> None:
        """Add a mixture of the last process, or of another one, or on pages of the next step."""
        last = next((one.process for one in reversed(self.steps) if one.process is not None), 0)
        if last not in self.scene.spaces or self.dice.randrange(4) == 0:
            last = self.dice.choice(sorted(self.scene.spaces))
        name = self.dice.choices(list(self.weights), list(self.weights.values()))[0]
        if next_ and next_.process in self.scene.spaces and (its := self._pages(next_)):
            last, self.focus = next_.process, its
        elif self.dice.randrange(3):
            self.focus = self.nearby(last)
        MIXTURES[name](self, last)
        self.focus = None

    def _pages(self, step: Step) -> Range | None:
        """Pages that a step is about, of an area that there is already."""
        areas = self.scene.spaces[step.process or 0].areas
        its = [value for _, value in step.values if isinstance(value, Range)]
        nr = areas[its[0].name].nr if its and its[0].name in areas else 1
        its += [
            Range(value.name, value.offset, value.offset + nr)
            for _, value in step.values
            if isinstance(value, Place)
        ]
        known = [one for one in its if one.name in areas]
        if not known:
            return None
        chosen = self.dice.choice(known)
        nr = areas[chosen.name].nr
        begin = min(chosen.begin or 0, nr - 1)
        return Range(chosen.name, begin, max(begin + 1, min(chosen.end or nr, nr)))


def _with_declared(dice: random.Random, program: Program) -> Program:
    """Declare what mixtures use and the program does not have."""
    scene = Scene()
    for step in program:
        scene.calls(step)
    missing = [
        new_step("file", file=name, size=FILE_PAGES * 4096, kind=kind)
        for name, kind in _FILES
        if name not in scene.files
    ]
    if not scene.groups:
        missing.append(new_step("group", group="g", size=64 << 20))
    at = sum(one.form.declares for one in program)
    if "swap" not in scene.seen:
        how = ("synchronous", "device", "holes")
        flags = (one for one in how if dice.randrange(3) == 0)
        missing.append(new_step("swap", None, *flags, size=64 << 20))
    return Program((*program.steps[:at], *missing, *program.steps[at:]))


def _without_unused(steps: Iterable[Step]) -> Iterator[Step]:
    """Leave out declarations of files that no step names."""
    its = list(steps)
    used = {name for step in its if step.verb != "file" for name in _names(step)}
    yield from (step for step in its if step.verb != "file" or step.word("file") in used)


def _names(step: Step) -> Iterator[str]:
    for _, value in step.values:
        yield value.name if isinstance(value, Range | Place) else str(value)


def _with_other(dice: random.Random, steps: tuple[Step, ...], at: int) -> tuple[Step, ...]:
    """Another value in the last step before a place, or in any one that does not declare."""
    first = sum(one.form.declares for one in steps)
    if at <= first or dice.randrange(3) == 0:
        at = first + 1 + dice.randrange(max(1, len(steps) - first))
    if at > len(steps):
        return steps
    return (*steps[: at - 1], _other(dice, steps[at - 1]), *steps[at:])


def _other(dice: random.Random, step: Step) -> Step:
    """The step with another value in one place, or with a flag more or less."""
    names = [name for name, _ in step.values] + list(step.form.options)
    places = [name for name in names if isinstance(step.kind(name), Number | Word | Words)]
    ranges = [name for name, value in step.values if isinstance(value, Range)]
    if step.form.flags and dice.randrange(3) == 0:
        flag = dice.choice(list(step.form.flags))
        flags = {*step.flags} ^ {flag}
        return replace(step, flags=tuple(one for one in step.form.flags if one in flags))
    if step.verb in {"set", "call"} and dice.randrange(2):
        return _other_word(dice, step)
    if ranges and (not places or dice.randrange(2)):
        name = dice.choice(ranges)
        return _with(step, name, _other_range(dice, step.range(name)))
    if not places:
        return step
    name = dice.choice(places)
    return _with(step, name, _other_value(dice, step, name))


def _other_word(dice: random.Random, step: Step) -> Step:
    if step.verb == "set" and (values := FILES.get(step.word("file"))):
        return _with(step, "value", dice.choice(values))
    if numbers := {**CALLS, **CALLS_ON_PAGES}.get(str(step.get("function"))):
        for name, some in zip("xy", numbers, strict=True):
            if int(chosen := dice.choice(some.split())):
                step = _with(step, name, int(chosen))
    return step


def _other_range(dice: random.Random, chosen: Range) -> Range:
    begin, end = chosen.begin or 0, chosen.end or 2
    match dice.randrange(4):
        case 0:
            return Range(chosen.name)
        case 1:
            begin += dice.randrange(end - begin)
            return Range(chosen.name, begin, begin + 1)
        case 2:
            return Range(chosen.name, begin, begin + 1 + dice.randrange(end - begin))
        case _:
            return Range(chosen.name, begin + dice.randrange(end - begin), end)


def _other_value(dice: random.Random, step: Step, name: str) -> Value:
    kind, value = step.kind(name), step.get(name)
    if isinstance(kind, Word):
        return dice.choice(list(kind.numbers))
    if isinstance(kind, Words):
        return tuple(dice.sample(list(kind.numbers), 1 + dice.randrange(2)))
    assert isinstance(kind, Number)
    now = value if isinstance(value, int) else 1
    numbers = (now + 1, now - 1, 2 * now, now // 2, 0, 1, 2, 9, 512, 1 << dice.randrange(11))
    return min(kind.most, max(kind.least, dice.choice(numbers)))


def _with(step: Step, name: str, value: Value) -> Step:
    given = {**dict(step.values), name: value}
    order = (*step.form.operands, *step.form.options)
    return replace(step, values=tuple((one, given[one]) for one in order if one in given))


def _as_text(steps: Iterable[Step]) -> Program:
    """The steps with numbers of their lines, without those that do not fit."""
    return parse(str(without_misplaced(Program(tuple(steps)))))
