# SPDX-License-Identifier: GPL-2.0-only
"""Finds the function and line at which a hosted kernel crashed or hung.

The kernel's objects have no debug information, and must not be compiled differently to get it. The
linker's maps lead from an address to an object and an offset in it. After a fault that object alone
is compiled again beside the variant's tree, with the command that kbuild recorded and -g, which
adds sections and changes no code. Its lines are used if its functions have the same addresses.
"""

import json
import os
import re
import shlex
import signal
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from ream.command import Command, run
from ream.errors import ReamError
from ream.kernel import confine
from ream.kernel.build import COMPILE_S
from ream.kernel.variant import HOME
from ream.paths import CHECKOUT
from ream.stage.link import Program, map_of

TOOL_S = 60.0
NS_PER_S = 1e9
REGISTERS_PER_LINE = 3
ASKED = signal.SIGUSR1
"""Signal that makes the other CPUs report where they are if a sample does not end."""


@dataclass(frozen=True)
class Fault:
    """A runner's report on a thread that crashed, or that did not finish a sample."""

    number: int
    """The signal's number; SIGALRM: the sample did not end in time."""
    canonical: bool
    """Whether `address` is known. It is not if the pointer was not canonical."""
    address: int
    row: str | None
    subject: str | None
    """The name of the variant or limit; None before the first sample."""
    allowed_ns: int
    slowest_ns: int
    """Time of the slowest earlier sample of the row; 0: this is the first."""
    symbol: str | None
    """The undefined symbol that was reached, if one was."""
    bug: str | None
    """File and line of the BUG(), if it is one."""
    registers: Mapping[str, int]
    calls: tuple[int, ...]
    """Return addresses found on the stack, the innermost first; old ones may be among them."""

    @property
    def pc(self) -> int:
        """The program counter."""
        return self._register("rip", "pc")

    @property
    def system_call(self) -> int:
        """The number of the system call that the thread made, if the fault is one."""
        return self._register("rax", "x8")

    def _register(self, *names: str) -> int:
        """Return a register's value, by its names on x86-64 and arm64."""
        return next(self.registers[name] for name in names if name in self.registers)

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Self:
        """Make a fault from the JSON object in a runner's line."""
        return cls(
            number=said["fault"],
            canonical=said["canonical"],
            address=said["address"],
            row=said["row"],
            subject=said["subject"],
            allowed_ns=said["allowed_ns"],
            slowest_ns=said["slowest_ns"],
            symbol=said["symbol"],
            bug=said["file"] and f"{said['file']}:{said['line']}",
            registers=said["registers"],
            calls=tuple(said["calls"]),
        )


@dataclass(frozen=True)
class Frame:
    """A function, and the line in it."""

    function: str
    line: str | None
    """The file and line as "mm/memory.c:1042"; None if they are not known."""

    @property
    def is_of_a_header(self) -> bool:
        """Whether the line is in a header."""
        return self.line is not None and self.line.partition(":")[0].endswith(".h")

    def __str__(self) -> str:
        return f"{self.function}()" + (f" ({self.line})" if self.line else "")


@dataclass(frozen=True)
class CodePlace:
    """The place of an address in the code."""

    frames: tuple[Frame, ...]
    """Functions at the address, the innermost inlined one first, the outermost last."""
    offset: int | None = None
    """Offset from the beginning of the function, in a kernel's object."""
    file: str | None = None
    """The object; None in the program around the kernels."""

    @property
    def is_kernel(self) -> bool:
        """Whether it is the kernel's own code, not a stand-in of ream's."""
        return self.file is not None and not self.file.startswith(f"{HOME}/")

    def __str__(self) -> str:
        """Return the function, with what is inlined there and what it is inlined into."""
        innermost, outermost = self.frames[0], self.frames[-1]
        if innermost.line is None and self.file is not None:
            return f"{innermost.function}()+{self.offset:#x} ({self.file})"
        own = next((one for one in self.frames if not one.is_of_a_header), innermost)
        into = "" if own == outermost else f" inlined into {outermost.function}()"
        return f"{own}{into}" + ("" if own == innermost else f"; inlined there: {innermost}")


def told(faults: Sequence[Fault], program: Program) -> str:
    """Describe a fault in a line, followed by the registers and the calls on the stack.

    faults: those of several CPUs if it is not known which one hangs. The one in kernel code, or
    nearest to it, is described.
    """
    with tempfile.TemporaryDirectory() as work:
        code = Code(program, Path(work))
        fault = min(faults, key=lambda one: _distance(one, code))
        return "\n".join((_line(fault, code), *_registers(fault), *_calls(fault, code)))


def _distance(fault: Fault, code: "Code") -> int:
    """Rank of a fault: 0 in kernel code, 1 in the program around it, 2 where it is not known.

    A CPU that only waits for another one is in the program around the kernels.
    """
    place = code.at(fault.pc)
    if place is None or place.file is None:
        return 2
    return 0 if place.is_kernel else 1


def _line(fault: Fault, code: "Code") -> str:
    who = ": ".join(word for word in (fault.row, fault.subject) if word) or "before any sample"
    return f"{who}: {_what(fault)}{_where(fault, code)}"


def _what(fault: Fault) -> str:
    name = signal.Signals(fault.number).name
    if fault.symbol is not None:
        return f"the kernel reached `{fault.symbol}`, which the native stage does not provide"
    if fault.bug is not None:
        return f"BUG at {fault.bug}"
    if fault.number in (signal.SIGALRM, ASKED):
        slowest = f"; the slowest of its row took {fault.slowest_ns / NS_PER_S:.3g} s"
        return (
            f"no end after {fault.allowed_ns / NS_PER_S:g} s"
            f"{slowest if fault.slowest_ns else ''}: it loops, or waits for what does not come"
        )
    if fault.number == signal.SIGSYS:
        number = fault.system_call
        return f"it makes system call {number} of the machine's kernel, which is forbidden to it"
    if fault.number not in (signal.SIGSEGV, signal.SIGBUS):
        return name
    at = f"address {fault.address:#x}" if fault.canonical else "an address that cannot be one"
    return f"{name} at {at}"


def _where(fault: Fault, code: "Code") -> str:
    place = code.at(fault.pc, lines=True)
    if place is not None and place.is_kernel:
        return f", in {place}"
    # In a stand-in, or after a jump through a bad pointer, the caller is on the stack.
    callers = (address - 1 for address in fault.calls)
    if place is not None:
        callers = (one for one in callers if (its := code.at(one)) and its.is_kernel)
    caller = next(callers, None)
    called = None if caller is None else code.at(caller, lines=True)
    words = [f"in {place}" if place else f"at {fault.pc:#x}"]
    return "".join(f", {one}" for one in (*words, *([f"called from {called}"] if called else [])))


def _registers(fault: Fault) -> Iterator[str]:
    words = [f"{name:>6} {value:016x}" for name, value in fault.registers.items()]
    for first in range(0, len(words), REGISTERS_PER_LINE):
        yield " ".join(words[first : first + REGISTERS_PER_LINE])


def _calls(fault: Fault, code: "Code") -> Iterator[str]:
    """Yield a line of possible callers, which the kernel's own dumps mark with a question mark."""
    places = [code.at(address - 1) for address in fault.calls]
    names = [f"{place.frames[-1].function}()" for place in places if place and place.file]
    if names:
        yield f"  on the stack: {', '.join(names)}"


@dataclass(frozen=True)
class Piece:
    """A section of an input file in a linker's map."""

    section: str
    start: int
    bytes: int
    file: Path
    into: str
    """The output section that it became part of."""


_PIECE = re.compile(
    r"^(?P<into>[^\s:]\S*)|^ (\S+)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S.*)$", re.MULTILINE
)
_MAP = "Linker script and memory map"
"""Heading in a linker's map. What comes before it was not linked."""

_FUNCTION = re.compile(r"^([0-9a-f]+) .{6}F (\S+)\t([0-9a-f]+)(?: \.hidden)? (\S+)$", re.MULTILINE)
_RECORDED = re.compile(r"^savedcmd_\S+ := (.*?)(?:\s;.*)?$", re.MULTILINE)


def pieces(text: str) -> Iterator[Piece]:
    """Yield the input sections in a linker's map."""
    into = ""
    for output, section, start, size, file in _PIECE.findall(text.partition(_MAP)[2]):
        if output:
            into = output
        else:
            yield Piece(section, int(start, 16), int(size, 16), Path(file), into)


class Code:
    """The code of a linked program. work: a directory for objects that are compiled again."""

    def __init__(self, program: Program, work: Path) -> None:
        self._program = program
        self._tool = program.arch.tool("addr2line")
        self._work = work
        self._maps: dict[Path, tuple[Piece, ...]] = {}
        self._with_lines: dict[Path, Path | None] = {}

    def at(self, address: int, *, lines: bool = False) -> CodePlace | None:
        """Return the place of an address, None if it is no code; lines: also find the line."""
        piece = _holding(self._pieces(self._program.path), address)
        if piece is None:
            return None
        if piece.file not in self._copies:
            return self._ours(address)
        offset = address - piece.start
        inner = _holding(self._pieces(piece.file), offset, piece.section)
        if inner is None:
            return None
        linked = {its.linked: its.path for its in self._objects}
        path = linked.get(inner.file, inner.file)
        return self._kernels(path, inner.section, offset - inner.start, lines=lines)

    @cached_property
    def _copies(self) -> frozenset[Path]:
        return frozenset(self._program.path.parent / f"{name}.o" for name in self._program.order)

    @cached_property
    def _objects(self) -> tuple["_Object", ...]:
        return tuple(
            _Object(*pair)
            for kernel in self._program.kernels
            for pair in zip(kernel.linked, kernel.objects, strict=True)
        )

    def _pieces(self, linked: Path) -> tuple[Piece, ...]:
        if linked not in self._maps:
            place = map_of(linked)  # a program that ran on another machine has no map here
            text = place.read_text(errors="replace") if place.exists() else ""
            self._maps[linked] = tuple(pieces(text))
        return self._maps[linked]

    def _ours(self, address: int) -> CodePlace | None:
        """Return the place of an address in the program around the kernels, or in a library."""
        found = _addr2line(self._tool, self._program.path, f"{address:#x}", CHECKOUT)
        return CodePlace(found) if found else None

    def _kernels(self, path: Path, section: str, offset: int, *, lines: bool) -> CodePlace | None:
        held = [its for its in functions(path) if its.section == section and its.start <= offset]
        if not held:
            return None
        last = max(held, key=lambda its: its.start)
        root = build_of(path)
        place = CodePlace(
            (Frame(last.name, None),), offset - last.start, str(path.relative_to(root))
        )
        again = self._compiled_again(path, root) if lines else None
        if again is None:
            return place
        frames = _addr2line(self._tool, again, f"{offset:#x}", root.parent, "-j", section)
        return CodePlace(frames, place.offset, place.file) if frames else place

    def _compiled_again(self, path: Path, root: Path) -> Path | None:
        if path not in self._with_lines:
            out = self._work / f"{len(self._with_lines)}.o"
            self._with_lines[path] = out if compile_with_lines(path, root, out) else None
        return self._with_lines[path]


@dataclass(frozen=True)
class _Object:
    """An object as linked, which may be a copy, and as kbuild made it."""

    linked: Path
    path: Path


@dataclass(frozen=True)
class Function:
    """A function in the symbol table of an object."""

    name: str
    section: str
    start: int
    bytes: int


def functions(path: Path) -> frozenset[Function]:
    """Return the functions of an object."""
    listing = run(Command(("objdump", "-t", str(path)), path.parent, TOOL_S))
    return frozenset(
        Function(name, section, int(start, 16), int(size, 16))
        for start, section, size, name in _FUNCTION.findall(listing)
    )


def _holding(all_of: Iterable[Piece], address: int, into: str | None = None) -> Piece | None:
    for piece in all_of:
        if 0 <= address - piece.start < piece.bytes and into in (None, piece.into):
            return piece
    return None


def build_of(path: Path) -> Path:
    """Return the build directory that contains an object of a variant."""
    return next(parent for parent in path.parents if (parent / ".config").is_file())


def recorded(text: str) -> list[str]:
    """Return the compiler command that kbuild recorded for an object, without names of files."""
    match = _RECORDED.search(text)
    words = shlex.split(match[1]) if match else []
    outputs = {
        number + side for number, word in enumerate(words) if word == "-o" for side in (0, 1)
    }
    return [
        word
        for number, word in enumerate(words)
        if number not in outputs and not word.startswith("-Wp,-MMD,")
    ]


def compile_with_lines(path: Path, root: Path, out: Path) -> bool:
    """Compile a variant's object again with -g; return whether its functions are where they were.

    Objtool, which kbuild runs on its objects, replaces instructions by others of the same length.
    """
    try:
        words = recorded(path.with_name(f".{path.name}.cmd").read_text(encoding="utf-8"))
        if not words:
            return False
        # The command is from a Makefile of the series, which is not trusted.
        argv = (*confine.words(out.parent), *words, "-g", "-o", str(out))
        own = {"CCACHE_DISABLE": "1", "TMPDIR": str(out.parent)}
        run(Command(argv, root, COMPILE_S, own))
        return functions(out) == functions(path)
    except (OSError, ReamError):  # the function is known, and is reported without a line
        return False


def _addr2line(tool: str, path: Path, address: str, root: Path, *options: str) -> tuple[Frame, ...]:
    """Return the functions at an address, the innermost first; none if it is in no function."""
    words = (tool, "-f", "-i", "-e", str(path), *options, address)
    try:
        answer = run(Command(words, path.parent, TOOL_S)).splitlines()
    except ReamError:
        return ()
    pairs = zip(answer[::2], answer[1::2], strict=False)
    return tuple(Frame(name, source_line(line, root)) for name, line in pairs if name != "??")


def source_line(line: str, root: Path) -> str | None:
    """Return a file below a tree with its line, from the output of addr2line."""
    file, _, number = line.split(" ", maxsplit=1)[0].rpartition(":")
    if not file or file == "??" or not number.isdigit() or number == "0":
        return None
    path = Path(os.path.normpath(file))
    return f"{path.relative_to(root) if path.is_relative_to(root) else path.name}:{number}"


def fault_of(text: str) -> Fault | None:
    """Return the fault in a line of a runner; None if it reports none."""
    if not text.startswith('{"fault"'):
        return None
    return Fault.of(json.loads(text))


def wrong_of(text: str) -> str | None:
    """Return the variant whose memory is wrong, if a line of a runner reports that."""
    if not text.startswith('{"wrong"'):
        return None
    subject: str = json.loads(text)["subject"]
    return subject
