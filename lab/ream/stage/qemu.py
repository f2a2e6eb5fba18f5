# SPDX-License-Identifier: GPL-2.0-only
"""The machine of a guest, and QEMU's command line for it. Nothing is run here."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from ream.command import Command, require, run
from ream.counted import counted
from ream.errors import BadUsage
from ream.experiment import format_size, parse_size
from ream.kernel.arch import ARM64, X86_64

Accel = Literal["kvm", "tcg"]

VERSION_S = 20.0

PORT_NAME = "ream"
"""Name of the virtio port that carries results; guest/init.c looks for it."""

TCG_CPU = "Nehalem-v1,pdpe1gb=on"
"""A versioned model, so that instruction counts are the same everywhere. It has neither ERMS nor
FSRM: under TCG a `rep` string instruction counts once per element. It asks TCG for nothing
that TCG lacks, has 40 bits of physical address, and reports L2 and L3 sizes as Intel CPUs do.
"""


@dataclass(frozen=True)
class Board:
    """QEMU's settings for a machine of an architecture."""

    program: str
    machine: str
    """The value of QEMU's -machine."""
    console: str
    """The kernel's name of its serial console."""
    cpu: str
    """The CPU model that is emulated by default."""
    most_cpus: int
    """The most CPUs that its interrupt controller supports."""


BOARDS: Mapping[str, Board] = MappingProxyType(
    {
        X86_64.name: Board("qemu-system-x86_64", "q35", "ttyS0", TCG_CPU, 255),
        ARM64.name: Board("qemu-system-aarch64", "virt", "ttyAMA0", ARM64.cpu_model(None), 8),
    }
)
QEMU = BOARDS[X86_64.name].program

HOST_CPU = "host"
"""The value of -cpu for the host's CPU under KVM."""

LOCAL_DISTANCE = 10
REMOTE_DISTANCE = 20
LONGEST_DISTANCE = 254
"""Distances in the ACPI SLIT: of a node to itself, the default to another node, and the largest
that does not mean unreachable (255)."""

SMALLEST_GUEST = 256 << 20
"""Bytes that a kernel and an initramfs with ndctl need to boot."""

MIB = 1 << 20

_CPU_RANGE = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")
_DISTANCE = re.compile(r"([0-9]{1,3}),([0-9]{1,3})=([0-9]{1,3})")


@dataclass(frozen=True)
class GuestNode:
    """A NUMA node: bytes of memory, 0 for none; its CPUs as "0-1,4", "" for none."""

    memory_bytes: int
    cpus: str = ""

    def cpu_ranges(self) -> tuple[range, ...]:
        """The CPUs, in the order given. Raises BadUsage if the text is not such a list."""
        return tuple(_cpu_range(word) for word in self.cpus.split(",") if word)


@dataclass(frozen=True)
class GuestMachine:
    """The hardware of a guest. Raises BadUsage naming the option with an invalid value.

    distances: (from node, to node, SLIT distance). Other pairs have a distance of 20, and the
    reverse distance is the same unless given. options: more QEMU options, last so that they win.
    """

    accel: Accel
    icount: bool = False
    cpus: int = 1
    memory_bytes: int = 4 << 30
    nodes: tuple[GuestNode, ...] = ()
    distances: tuple[tuple[int, int, int], ...] = ()
    options: tuple[str, ...] = field(default=())
    cpu: str | None = None
    """The value of -cpu; None: the host's CPU under KVM, else the board's."""
    arch: str = X86_64.name

    @property
    def board(self) -> Board:
        return BOARDS[self.arch]

    def __post_init__(self) -> None:
        if not 1 <= self.cpus <= self.board.most_cpus:
            raise BadUsage(f"--cpus {self.cpus}: give 1 to {self.board.most_cpus}")
        if self.icount and self.accel != "tcg":
            raise BadUsage("--accel kvm: instructions are counted by TCG only; give --accel tcg")
        if self.icount and self.cpus != 1:
            raise BadUsage(
                f"--cpus {self.cpus}: a guest whose clock counts instructions has one CPU"
            )
        if self.memory_bytes < SMALLEST_GUEST:
            raise BadUsage(
                f"--memory {format_size(self.memory_bytes)}: a guest needs at least "
                f"{format_size(SMALLEST_GUEST)}"
            )
        if self.memory_bytes % MIB:
            raise BadUsage(f"--memory {self.memory_bytes}: not a multiple of 1 MiB")
        if any(not word or "\0" in word for word in self.options):
            raise BadUsage("--qemu-opts: holds an empty word; quote it as a shell would")
        self._check_nodes()
        self._check_distances()

    def _check_nodes(self) -> None:
        if not self.nodes:
            return
        for node in self.nodes:
            if node.memory_bytes < 0 or node.memory_bytes % (2 * MIB):
                # Guest memory is read in blocks of 2 MiB, and no block may span two nodes.
                raise BadUsage(f"--numa {node.memory_bytes}: not a multiple of 2 MiB")
        total = sum(node.memory_bytes for node in self.nodes)
        if total != self.memory_bytes:
            raise BadUsage(
                f"--numa: the nodes' memory adds up to {format_size(total)}, "
                f"--memory is {format_size(self.memory_bytes)}"
            )
        owner: dict[int, int] = {}
        for number, node in enumerate(self.nodes):
            for cpu in (cpu for cpus in node.cpu_ranges() for cpu in cpus):
                if cpu >= self.cpus:
                    raise BadUsage(f"--numa: node {number} has CPU {cpu}, --cpus is {self.cpus}")
                if cpu in owner:
                    raise BadUsage(f"--numa: CPU {cpu} is in node {owner[cpu]} and node {number}")
                owner[cpu] = number
        if missing := sorted(set(range(self.cpus)) - owner.keys()):
            raise BadUsage(f"--numa: CPU {missing[0]} is in no node; add cpus={missing[0]} to one")

    def _check_distances(self) -> None:
        seen = set()
        for source, target, distance in self.distances:
            said = f"--numa-distance {source},{target}={distance}"
            for node in (source, target):
                if node >= len(self.nodes):
                    nodes = f"--numa makes {counted(len(self.nodes), 'node')}"
                    raise BadUsage(f"{said}: there is no node {node}; {nodes}")
            if source == target:
                raise BadUsage(f"{said}: from a node to itself it is always {LOCAL_DISTANCE}")
            if not LOCAL_DISTANCE < distance <= LONGEST_DISTANCE:
                raise BadUsage(f"{said}: give {LOCAL_DISTANCE + 1} to {LONGEST_DISTANCE}")
            if (source, target) in seen:
                raise BadUsage(f"{said}: given twice")
            seen.add((source, target))


def parse_node(text: str) -> GuestNode:
    """Parse `--numa` in virtme-ng's format: "2G,cpus=0-1,cpus=4". "0" is a node without memory.

    Raises BadUsage naming the text.
    """
    size, *words = text.split(",")
    cpus = []
    for word in words:
        key, _, value = word.partition("=")
        if key != "cpus" or not _CPU_RANGE.fullmatch(value):
            raise BadUsage(f"--numa {text}: {word!r} is not cpus=FIRST or cpus=FIRST-LAST")
        cpus.append(value)
    # 0 is no valid size elsewhere, but a node may have no memory.
    memory_bytes = 0 if re.fullmatch(r"0+[KMGT]?", size, re.IGNORECASE) else _size(text, size)
    node = GuestNode(memory_bytes, ",".join(cpus))
    node.cpu_ranges()
    return node


def parse_distance(text: str) -> tuple[int, int, int]:
    """Parse `--numa-distance` in virtme-ng's format: "0,1=20". Raises BadUsage naming the text."""
    match = _DISTANCE.fullmatch(text)
    if match is None:
        raise BadUsage(f"--numa-distance {text}: not FROM,TO=DISTANCE, as in 0,1=20")
    return int(match[1]), int(match[2]), int(match[3])


def _size(text: str, size: str) -> int:
    try:
        return parse_size(size)
    except BadUsage as cause:
        raise BadUsage(f"--numa {text}: {cause}") from cause


def _cpu_range(word: str) -> range:
    match = _CPU_RANGE.fullmatch(word)
    if match is None:
        raise BadUsage(f"--numa: {word!r} is not a CPU or a range of CPUs")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise BadUsage(f"--numa: cpus={word} ends before it begins")
    return range(first, last + 1)


def qemu_version(arch: str = X86_64.name) -> str:
    """Return the version that QEMU prints; raises CannotRunHere if it is not installed."""
    program = BOARDS[arch].program
    require(program)
    said = run(Command((program, "--version"), Path("/"), VERSION_S)).splitlines()[0]
    return said.replace(" emulator version", "")


def qemu_command(
    machine: GuestMachine,
    *,
    kernel: Path,
    initramfs: Path | None,
    append: Sequence[str],
    init: Sequence[str],
    port: Path | None,
    qmp: Path | None,
    gdb: Path | None = None,
    more: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return QEMU's command line for one boot; shlex.join() of it can be pasted into a shell.

    append: kernel parameters, last so that they win. init: arguments of PID 1.
    port, qmp: unix sockets on which the caller must listen before QEMU starts, so that no output
    is lost. None: the guest is interactive and gets Ctrl-C; Ctrl-A X ends it. gdb: a socket for a
    debugger; the guest is then stopped until the debugger lets it run. more: ream's own options,
    before those of the machine.
    The guest's console is QEMU's standard output. Raises BadUsage if an argument has a space.
    """
    return (
        *(
            machine.board.program,
            "-name",
            PORT_NAME,
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
        ),
        "-no-reboot",  # a panic reboots, and that ends QEMU
        *("-serial", "stdio" if port else "mon:stdio"),
        *_processor(machine),
        *_memory(machine),
        *(_channels(port, qmp) if port and qmp else ()),
        *(_debugger(gdb) if gdb else ()),
        *("-kernel", str(kernel)),
        *(("-initrd", str(initramfs)) if initramfs else ()),
        *("-append", kernel_command_line(machine, append, init)),
        *more,
        *machine.options,
    )


def _channels(port: Path, qmp: Path) -> Iterable[str]:
    yield from ("-device", "virtio-serial-pci,max_ports=2")
    yield from ("-chardev", f"socket,id=port,path={_escaped(port)}")
    yield from ("-device", f"virtserialport,chardev=port,name={PORT_NAME}")
    yield from ("-chardev", f"socket,id=qmp,path={_escaped(qmp)}")
    yield from ("-mon", "chardev=qmp,mode=control")


def _debugger(gdb: Path) -> Iterable[str]:
    yield "-S"
    yield from ("-chardev", f"socket,id=gdb,path={_escaped(gdb)}")
    yield from ("-gdb", "chardev:gdb")


def kernel_command_line(machine: GuestMachine, append: Sequence[str], init: Sequence[str]) -> str:
    """Return kernel parameters, then arguments of PID 1. Raises BadUsage if one has a space."""
    words = [
        f"console={machine.board.console}",
        "ignore_loglevel",
        "printk.devkmsg=on",
        "panic=-1",
        "oops=panic",
    ]
    if machine.icount:
        words += ["nokaslr", "random.trust_cpu=off"]  # so that boots are reproducible
    words += append
    if init:
        words += ["--", *init]
    for word in words:
        if not word or re.search(r"[\s\"]", word):
            raise BadUsage(f"{word!r}: a word of the kernel's command line has no space or quote")
    return " ".join(words)


def _processor(machine: GuestMachine) -> Iterable[str]:
    if machine.accel == "kvm":
        yield from ("-accel", "kvm", "-cpu", machine.cpu or HOST_CPU)
    else:
        # With a thread for each CPU, a CPU may hit the int3 of a static key that another one
        # patches, and the guest crashes, as in one boot of ten. A single thread avoids this.
        yield from ("-accel", "tcg,thread=single")
        yield from ("-cpu", machine.cpu or machine.board.cpu)
    yield from ("-smp", str(machine.cpus))
    if machine.icount:
        # One instruction is one nanosecond, and an idle guest's clock jumps to its next timer.
        yield from ("-icount", "shift=0,sleep=off,align=off")
        yield from ("-rtc", "base=2026-01-01,clock=vm")
        yield from ("-seed", "1")  # seed of the random numbers that QEMU gives the kernel


def _memory(machine: GuestMachine) -> Iterable[str]:
    """Yield memory options. The host allocates only memory that the guest touches."""
    yield from ("-m", f"{machine.memory_bytes // MIB}M")
    if not machine.nodes:
        yield from ("-machine", f"{machine.board.machine},memory-backend=ram")
        yield from _backend("ram", machine.memory_bytes)
        return
    yield from ("-machine", machine.board.machine)
    for number, node in enumerate(machine.nodes):
        words = [f"node,nodeid={number}"]
        if node.memory_bytes:
            yield from _backend(f"ram{number}", node.memory_bytes)
            words.append(f"memdev=ram{number}")
        words += [f"cpus={word}" for word in node.cpus.split(",") if word]
        yield from ("-numa", ",".join(words))
    if machine.distances:
        yield from _distances(machine)


def _backend(name: str, nr_bytes: int) -> tuple[str, str]:
    return "-object", f"memory-backend-ram,id={name},size={nr_bytes // MIB}M,reserve=off"


def _distances(machine: GuestMachine) -> Iterable[str]:
    """Yield the distances of all pairs in both directions, since QEMU needs a full matrix."""
    given = {(source, target): distance for source, target, distance in machine.distances}
    nodes = range(len(machine.nodes))
    for source in nodes:
        for target in nodes:
            if source != target:
                back = given.get((target, source), REMOTE_DISTANCE)
                distance = given.get((source, target), back)
                yield from ("-numa", f"dist,src={source},dst={target},val={distance}")


def _escaped(path: Path) -> str:
    """Return a path for one of QEMU's option strings, in which commas are doubled."""
    return str(path).replace(",", ",,")
