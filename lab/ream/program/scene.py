# SPDX-License-Identifier: GPL-2.0-only
"""What the names of a program stand for: each step as a call with numbers.

The text alone decides addresses. Areas lie one behind the other in the order of their steps, each
aligned to a huge page and with a gap behind it, unless `at=` or `after=` gives another place.
"""

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ream.program import grammar
from ream.program.kinds import MOST_PROCESSES, PAGE_BYTES, Kind, Place, Range, Text, Value
from ream.program.kinds import Word as WordKind
from ream.program.kinds import Words as WordsKind
from ream.program.step import Program, ProgramError, Step

GROUPS = "/sys/fs/cgroup/"
HUGE_PAGES = 512
MOST_USER_PAGES = 1 << 31
"""The address space that programs map: 8 TiB."""
DEFAULT_NODE_PAGES = (640 << 20) // PAGE_BYTES
"""Memory of a program that declares none. The kernel turns THP off if less than 512 MiB of it are
left when it has booted.
"""


class Misplaced(ValueError):
    """A step does not fit those before it; the text says why and what to write."""


@dataclass(frozen=True)
class Call:
    """One step with numbers for all names, as kernels take it."""

    line: int
    name: str
    arguments: Mapping[str, int]
    measured: bool = False
    words: Mapping[str, str] = field(default_factory=dict)
    """Arguments that the kernel reads as text."""


@dataclass(frozen=True)
class Area:
    """Pages of an address space that have a name, whether or not something is mapped there."""

    page: int
    nr: int


@dataclass
class Space:
    """What a process knows: its areas, and the first page behind them."""

    areas: dict[str, Area] = field(default_factory=dict)
    next_page: int = 0

    def area(self, name: str) -> Area:
        """Return the area of this name. Raises Misplaced if there is none."""
        if name not in self.areas:
            known = ", ".join(list(self.areas)[:8]) or "none yet"
            raise Misplaced(f'no area "{name}" in this process; its areas are: {known}')
        return self.areas[name]

    def pages(self, chosen: Range) -> Area:
        """Pages of a range. Raises Misplaced if the area is shorter."""
        area = self.area(chosen.name)
        if chosen.begin is None or chosen.end is None:
            return area
        if chosen.end > area.nr:
            raise Misplaced(f'"{chosen}" is beyond the {area.nr} pages of "{chosen.name}"')
        return Area(area.page + chosen.begin, chosen.end - chosen.begin)

    def page(self, place: Place) -> int:
        """Page of a place, which may be behind the area's end."""
        return self.area(place.name).page + place.offset

    def add(self, name: str, nr: int, at: Place | None, after: Place | None) -> Area:
        """Choose pages for a new area. Raises Misplaced if no address space is left."""
        if at is not None:
            page = self.page(at)
        elif after is not None:
            page = self.page(after) + self.area(after.name).nr
        else:
            page = -(-self.next_page // HUGE_PAGES) * HUGE_PAGES
        return self.put(name, Area(page, nr))

    def put(self, name: str, area: Area) -> Area:
        """Name these pages, and place later areas behind them."""
        if area.page + area.nr + HUGE_PAGES > MOST_USER_PAGES:
            raise Misplaced(f'no address space is left for "{name}"; map fewer or smaller areas')
        self.areas[name] = area
        self.next_page = max(self.next_page, area.page + area.nr + HUGE_PAGES)
        return area


@dataclass
class Scene:
    """What there is after the steps so far, as far as the text decides it."""

    nodes: int = 1
    cpus: int = 1
    spaces: dict[int, Space] = field(default_factory=lambda: {0: Space()})
    files: dict[str, int] = field(default_factory=dict)
    file_pages: dict[str, int] = field(default_factory=dict)
    """Size of each file as the steps so far set it."""
    groups: dict[str, int] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    """Steps of which a program has one at most, or which others need."""

    def calls(self, step: Step) -> tuple[Call, ...]:
        """Resolve one step, and go on to the scene after it.

        Raises Misplaced if it names what is not there; the scene is then as it was.
        """
        form = step.form
        if form.declares and "step" in self.seen:
            raise Misplaced(
                f'"{step.verb}" describes the computer; write it before all other steps'
            )
        if step.process is not None and step.process not in self.spaces:
            raise Misplaced(f"there is no process p{step.process} here; fork it first")
        if step.measured and (form.declares or "measure" in self.seen):
            raise Misplaced("a program measures at most one step, and no declaration")
        do: Callable[[Step], tuple[Call, ...]] = getattr(self, f"_do_{step.verb}", self._plain)
        found = do(step)
        if not form.declares and step.verb != "swap":  # which may stand anywhere
            self.seen.add("step")
        if step.measured:
            self.seen.add("measure")
            found = (replace(found[0], measured=True), *found[1:])
        return found

    def _plain(self, step: Step) -> tuple[Call, ...]:
        return (Call(step.line, step.verb, self._arguments(step)),)

    def _arguments(self, step: Step) -> dict[str, int]:
        """Numbers of the operands, flags and options whose names the call has, too."""
        form = step.form
        numbers: dict[str, int] = {}
        if step.process is not None:
            numbers["process"] = step.process
        for name, value in step.values:
            option = form.options.get(name)
            argument = option.argument if option and option.argument else name
            numbers.update(self._numbers(step, argument, step.kind(name), value))
        for name, option in form.options.items():
            if option.default is not None:
                numbers.setdefault(option.argument or name, option.default)
        if form.flags:
            chosen = [form.flags[flag] for flag in step.flags] or [form.flags_if_none]
            numbers[form.flags_argument] = _or(chosen)
        return numbers

    def _numbers(self, step: Step, argument: str, kind: Kind, value: Value) -> dict[str, int]:
        match value:
            case int():
                self._check_number(argument, value)
                return {argument: value}
            case Range():
                return self._pages(step, argument, value)
            case str() if not isinstance(kind, Text):
                return {argument: self._named(argument, kind, value)}
            case tuple() if isinstance(kind, WordsKind):
                return {argument: _or(kind.numbers[str(one)] for one in value)}
            case tuple():
                for node in value:
                    self._check_number("node", int(node))
                return {argument: _or(1 << int(node) for node in value)}
        return {}  # a place or text: its step knows what it is for

    def _pages(self, step: Step, argument: str, value: Range) -> dict[str, int]:
        if argument == "pages":
            return self._file_pages(value)
        area = self._space(step).pages(value)
        return {"page": area.page, "nr": area.nr}

    def _named(self, argument: str, kind: Kind, value: str) -> int:
        if isinstance(kind, WordKind):
            return kind.numbers[value]
        return self._file(value) if argument == "file" else self._group(value)

    def _check_number(self, argument: str, value: int) -> None:
        if argument == "node" and value >= self.nodes:
            raise Misplaced(f"there is no node {value}; `memory` declares {self.nodes}")
        if argument == "cpu" and value >= self.cpus:
            raise Misplaced(f"there is no CPU {value}; `cpus` declares {self.cpus}")

    def _space(self, step: Step) -> Space:
        assert step.process is not None
        return self.spaces[step.process]

    def _file(self, name: str) -> int:
        return _known(self.files, "file", name, "1M shmem")

    def _group(self, name: str) -> int:
        return _known(self.groups, "group", name, "64M")

    def _file_pages(self, chosen: Range) -> dict[str, int]:
        number = self._file(chosen.name)
        begin = chosen.begin or 0
        end = self.file_pages[chosen.name] if chosen.end is None else chosen.end
        if end <= begin:
            raise Misplaced(f'"{chosen}" is empty here; name its pages, as in {chosen.name}[0:4]')
        return {"file": number, "page": begin, "nr": end - begin}

    def _once(self, verb: str) -> None:
        if verb in self.seen:
            raise Misplaced(f'"{verb}" is declared twice; leave one of the lines')
        self.seen.add(verb)

    def _do_call(self, step: Step) -> tuple[Call, ...]:
        area = {"page": 0, "nr": 0, **self._arguments(step)}
        return (Call(step.line, step.verb, area, words={"function": step.word("function")}),)

    def _do_set(self, step: Step) -> tuple[Call, ...]:
        folder, is_group, name = step.word("file").partition(GROUPS)
        words = dict(step.values)
        if is_group:  # the kernel knows groups by their numbers; 0 is the root
            group, _, rest = name.partition("/")
            words["file"] = f"{folder}{GROUPS}{self._group(group) + 1}/{rest}"
        return (Call(step.line, step.verb, {}, words={at: str(it) for at, it in words.items()}),)

    _do_show = _do_set

    def _do_boot(self, step: Step) -> tuple[Call, ...]:
        words = {name: str(value) for name, value in step.values}
        return (Call(step.line, step.verb, {}, words=words),)

    def _do_memory(self, step: Step) -> tuple[Call, ...]:
        self._once(step.verb)
        sizes = [step.number(name) // PAGE_BYTES for name, _ in step.values]
        self.nodes = len(sizes)
        return (_memory_call(step.line, sizes),)

    def _do_dma32(self, step: Step) -> tuple[Call, ...]:
        self._once(step.verb)
        return (Call(step.line, step.verb, {"nr": step.number("nr") // PAGE_BYTES}),)

    def _do_cpus(self, step: Step) -> tuple[Call, ...]:
        self._once(step.verb)
        self.cpus = step.number("nr")
        return self._plain(step)

    def _do_group(self, step: Step) -> tuple[Call, ...]:
        name, size = step.word("group"), step.get("size")
        number = _declare(self.groups, "group", name)
        nr = size // PAGE_BYTES if isinstance(size, int) else 0
        return (Call(step.line, "group", {"group": number, "nr": nr}),)

    def _do_file(self, step: Step) -> tuple[Call, ...]:
        name, nr = step.word("file"), step.number("size") // PAGE_BYTES
        kind = grammar.FILE_KINDS[step.word("kind")]
        number = _declare(self.files, "file", name)
        self.file_pages[name] = nr
        return (Call(step.line, "open", {"file": number, "kind": kind, "nr": nr}),)

    def _do_swap(self, step: Step) -> tuple[Call, ...]:
        size = step.get("size")
        if isinstance(size, str) and "swap" not in self.seen:
            raise Misplaced("there is no swap yet; write its size first, as in `swap 192M`")
        if size == "off":
            return (Call(step.line, "swapoff", {}),)
        if isinstance(size, int):
            self._once("swap")
        nr = size // PAGE_BYTES if isinstance(size, int) else 0
        flags = _or(step.form.flags[flag] for flag in step.flags)
        return (Call(step.line, "swapon", {"nr": nr, "flags": flags}),)

    def _do_mmap(self, step: Step) -> tuple[Call, ...]:
        name, nr, source = step.word("name"), step.number("nr"), step.get("source")
        space = self._space(step)
        if name in space.areas and step.get("at") is None and step.get("after") is None:
            raise Misplaced(f'there is an area "{name}" already; `at={name}` maps over it')
        flags = grammar.MAP_FIXED | grammar.SHARINGS[step.word("sharing")]
        flags |= _or(step.form.flags[flag] for flag in step.flags)
        file, offset = -1, 0
        if isinstance(source, Place):
            file, offset = self._file(source.name), source.offset
        else:
            flags |= grammar.MAP_ANONYMOUS
        area = space.add(name, nr, _place(step, "at"), _place(step, "after"))
        protection = grammar.PROTECTIONS[step.word("protection")]
        assert step.process is not None
        where = {"process": step.process, "page": area.page, "nr": area.nr}
        mapped = {"protection": protection, "flags": flags, "file": file, "offset": offset}
        call = Call(step.line, "mmap", {**where, **mapped})
        if step.get("thp") is None:
            return (call,)
        advice = grammar.THP_ADVICE[step.word("thp")]
        return call, Call(step.line, "madvise", {**where, "advice": advice})

    def _do_mremap(self, step: Step) -> tuple[Call, ...]:
        space, target, new_nr = self._space(step), step.place("target"), step.number("new_nr")
        source = step.range()
        old, begin = space.pages(source), source.begin or 0
        numbers = {"process": step.process or 0, "page": old.page, "nr": old.nr, "new_nr": new_nr}
        stays = "stay" in step.flags
        if stays and (target.name != source.name or target.offset != begin):
            raise Misplaced(f'"stay" needs the same place twice, as in `mremap {source.name} '
                            f"{Place(source.name, begin)} {new_nr} stay`")  # fmt: skip
        flags = _or(step.form.flags[flag] for flag in step.flags)
        if not stays:
            flags |= grammar.MREMAP_MAYMOVE | grammar.MREMAP_FIXED
        if target.name in space.areas:
            area = space.area(target.name)
            nr = max(area.nr, target.offset + new_nr)
            new_page = space.put(target.name, Area(area.page, nr)).page + target.offset
        elif target.offset:
            raise Misplaced(f'no area "{target.name}"; a new one is named without "+"')
        else:
            where = _place(step, "at"), _place(step, "after")
            new_page = space.add(target.name, new_nr, *where).page
        numbers |= {"flags": flags, "new_page": 0 if stays else new_page}
        return (Call(step.line, step.verb, numbers),)

    def _do_fork(self, step: Step) -> tuple[Call, ...]:
        child = step.number("child")
        if child in self.spaces:
            raise Misplaced(f"p{child} exists already; fork another, up to p{MOST_PROCESSES - 1}")
        self.spaces[child] = copy.deepcopy(self._space(step))
        return self._plain(step)

    def _do_exit(self, step: Step) -> tuple[Call, ...]:
        assert step.process is not None
        del self.spaces[step.process]
        return self._plain(step)

    def _do_uffd_move(self, step: Step) -> tuple[Call, ...]:
        from_page = self._space(step).page(step.place("from"))
        return (Call(step.line, "uffd_move", {**self._arguments(step), "from_page": from_page}),)

    def _do_truncate(self, step: Step) -> tuple[Call, ...]:
        calls = self._plain(step)
        self.file_pages[step.word("file")] = step.number("nr")
        return calls

    def _do_pwrite(self, step: Step) -> tuple[Call, ...]:
        calls = self._plain(step)
        name, numbers = step.range("pages").name, calls[0].arguments
        self.file_pages[name] = max(self.file_pages[name], numbers["page"] + numbers["nr"])
        return calls


def _or(numbers: Iterable[int]) -> int:
    result = 0
    for number in numbers:
        result |= number
    return result


def _known(numbers: Mapping[str, int], what: str, name: str, example: str) -> int:
    if name not in numbers:
        raise Misplaced(f'no {what} "{name}"; declare it above, as in `{what} {name} {example}`')
    return numbers[name]


def _declare(numbers: dict[str, int], what: str, name: str) -> int:
    if name in numbers:
        raise Misplaced(f'the {what} "{name}" is declared twice; leave one of the lines')
    return numbers.setdefault(name, len(numbers))


def _place(step: Step, name: str) -> Place | None:
    return None if step.get(name) is None else step.place(name)


def _memory_call(line: int, nr_pages: list[int]) -> Call:
    sizes = nr_pages + [0] * (4 - len(nr_pages))
    return Call(line, "memory", {f"node{node}": nr for node, nr in enumerate(sizes)})


def resolve(program: Program, where: str = "program") -> tuple[Call, ...]:
    """Resolve all steps of a program, which begins with what it does not declare (line 0).

    Raises ProgramError with all steps that do not fit those before them.
    """
    scene, faults = Scene(), []
    calls: list[Call] = []
    for step in program:
        try:
            calls += scene.calls(step)
        except Misplaced as fault:
            faults.append((step.line, f"{step.verb}: {fault}"))
    if faults:
        raise ProgramError(where, faults)
    declared = []
    if "memory" not in scene.seen:
        declared.append(_memory_call(0, [DEFAULT_NODE_PAGES]))
    if "cpus" not in scene.seen:
        declared.append(Call(0, "cpus", {"nr": 1}))
    return (*declared, *calls)


def last_calls(program: Program) -> tuple[Call, ...]:
    """Calls behind a program's end: each process that is left reads all that it can read."""
    scene = Scene()
    for step in program:
        scene.calls(step)
    behind = max((step.line for step in program), default=0) + 1
    return tuple(
        Call(behind + nr, "contents", {"process": process})
        for nr, process in enumerate(sorted(scene.spaces))
    )


def without_misplaced(program: Program) -> Program:
    """Leave out the steps that do not fit those before them."""
    scene, left = Scene(), []
    for step in program:
        try:
            scene.calls(step)
        except Misplaced:
            continue
        left.append(step)
    return Program(tuple(left))
