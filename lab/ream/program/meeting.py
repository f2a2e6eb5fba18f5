# SPDX-License-Identifier: GPL-2.0-only
"""Has a step of a short program meet one of another process, while one of the two is half done.

What comes in between is chosen so that the words that users see do not depend on which of the two
steps is first.
"""

import random
from collections.abc import Iterator, Sequence

from ream.program.drawn_spaces import NR_PROCESSES
from ream.program.kinds import Place, Range, Value
from ream.program.scene import Scene, Space, without_misplaced
from ream.program.step import Program, Step, new_step
from ream.program.text import parse

NR_CPUS = 3
MOST_PLACES = (4, 16, 64, 160)
"""A step of few pages has some ten places where it may be interrupted, and others have more."""
_MAY_STOP = frozenset(
    ("move_pages", "mbind", "migrate_pages", "mprotect", "mremap", "munmap", "fork", "mlock",
     "munlock", "mlockall", "read", "write", "reclaim", "compact")
)  # fmt: skip
"""Steps that leave contents as they are but for what their own process sees."""
_ADVICE = ("dontneed", "free", "cold", "pageout", "collapse", "willneed", "populate-read")
_MOST_SHARING = 2
"""Processes that are forked, so that pages belong to several address spaces."""


def met(dice: random.Random, program: Program) -> Program:
    """Choose a step that names pages, and have a step of another process meet it.

    Returns the program as it is if no step of it may be interrupted.
    """
    steps = program.steps
    places = [at for at, step in enumerate(steps) if _may_stop(step)]
    if not places:
        return program
    at = dice.choice(places[-4:])
    scene, step = Scene(), steps[at]
    for one in steps[:at]:
        scene.calls(one)
    before = list(_shared(dice, scene, step.process))
    process = step.process if step.process in scene.spaces else dice.choice(sorted(scene.spaces))
    others = sorted(scene.spaces.keys() - {process})
    if not others:
        return program
    other = dice.choice(others)
    area = _pages(dice, scene.spaces[other], step)
    if area is None:
        return program
    before += _spread(dice, scene, [process, *others], area)
    its = _other(dice, other, area)
    first, second = (its, step) if _may_stop(its) and dice.randrange(2) else (step, its)
    stop = new_step("interrupt", nr=1 + dice.randrange(dice.choice(MOST_PLACES)))
    together = (*_on_cpus(steps[:at]), *before, stop, first, second, *steps[at + 1 :])
    return parse(str(without_misplaced(Program(together))))


def _may_stop(step: Step) -> bool:
    return step.verb in _MAY_STOP or (step.verb == "madvise" and step.word("advice") in _ADVICE)


def _shared(dice: random.Random, scene: Scene, process: int | None) -> Iterator[Step]:
    """Fork until there are a few processes, now and then more than one other."""
    parent = process if process in scene.spaces else min(scene.spaces)
    wanted = 2 + dice.randrange(_MOST_SHARING)
    free = [one for one in range(NR_PROCESSES) if one not in scene.spaces]
    for child in free[: max(0, wanted - len(scene.spaces))]:
        step = new_step("fork", parent, child=child)
        scene.calls(step)
        yield step


def _pages(dice: random.Random, space: Space, step: Step) -> Range | None:
    """The pages of the step if the other process has them, too, or some of its areas."""
    area = step.get("area")
    if isinstance(area, Range) and area.name in space.areas:
        nr = space.areas[area.name].nr
        begin = min(area.begin or 0, nr - 1)
        whole = Range(area.name, begin, max(begin + 1, min(area.end or nr, nr)))
        return _part(dice, whole) if dice.randrange(3) == 0 else whole
    if not space.areas:
        return None
    name = dice.choice(sorted(space.areas))
    return Range(name, 0, space.areas[name].nr)


def _part(dice: random.Random, area: Range) -> Range:
    begin, end = area.begin or 0, area.end or 1
    first = begin + dice.randrange(end - begin)
    return Range(area.name, first, first + 1 + dice.randrange(end - first))


def _spread(
    dice: random.Random, scene: Scene, processes: Sequence[int], area: Range
) -> Iterator[Step]:
    """Have each process on a CPU of its own, whose TLB has its pages."""
    for cpu, process in enumerate(processes[:NR_CPUS]):
        yield new_step("run_on", process, cpu=cpu)
        if area.name in scene.spaces[process].areas:
            yield new_step(dice.choice(("read", "read", "write")), process, area=area)


def _on_cpus(steps: Sequence[Step]) -> Iterator[Step]:
    """The steps, on a computer with enough CPUs."""
    yield new_step("cpus", nr=NR_CPUS)
    yield from (step for step in steps if step.verb != "cpus")


def _other(dice: random.Random, process: int, area: Range) -> Step:
    """A step of another process that uses these pages, or changes how it has them."""
    verb = dice.choice(
        ("write", "read", "mprotect", "mprotect", "munmap", "mremap", "madvise", "move_pages",
         "move_pages", "fork")
    )  # fmt: skip
    values: dict[str, Value | None] = {"area": area}
    match verb:
        case "mprotect":
            values["protection"] = dice.choice(("r", "none", "rw"))
        case "madvise":
            values["advice"] = dice.choice(_ADVICE)
        case "move_pages":
            return new_step(verb, process, "all", node=dice.randrange(2), **values)
        case "mremap":
            nr = (area.end or 1) - (area.begin or 0)
            flags = ("dontunmap",) if dice.randrange(2) else ()
            target = Place(f"{area.name}met")
            return new_step(verb, process, *flags, target=target, new_nr=nr, **values)
        case "fork":
            return new_step(verb, process, child=NR_PROCESSES)
    return new_step(verb, process, **values)
