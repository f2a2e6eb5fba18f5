# SPDX-License-Identifier: GPL-2.0-only
"""Runs the kernel's own tests in a guest, and reads the results from the console.

A file of kernel/selftests lists the tests to run, and those that may be skipped. The same tests are
run on the base and on a series, which must give the same results.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from ream.command import Command, run
from ream.counted import counted
from ream.errors import BadUsage, ReamError
from ream.kernel.build import BUILD, arch_built
from ream.kernel.image import Image
from ream.kernel.series import load_series
from ream.kernel.variant import apply
from ream.paths import CHECKOUT, SERIES
from ream.stage.guest import Guest, boot
from ream.stage.initramfs import build_init, build_initramfs
from ream.stage.qemu import GuestMachine, qemu_command

SELFTESTS = CHECKOUT / "kernel" / "selftests"

PASS, FAIL, SKIP = "pass", "fail", "skip"

IN_GUEST = PurePosixPath("/selftests")
"""Folder in the guest with kernel/selftests/run.c under the name of each test; programs are in
bin/."""

COMPILE_S = 120.0
DEADLINE_S = 1800.0
SILENCE_S = 300.0
"""Time limit without output. Under TCG, the KUnit tests of memcpy are silent for longest."""

EXIT_SKIP = 4
"""KSFT_SKIP of tools/testing/selftests/kselftest.h, for a program whose tests could not run."""

# From tools/testing/selftests/mm/Makefile; static, because the guest has no libraries.
_FLAGS = ("-Wall", "-O2", "-static", "-D_GNU_SOURCE=", "-U_FORTIFY_SOURCE")
_LIBRARIES = ("-lrt", "-lpthread", "-lm")

_SHARED: Mapping[str, tuple[str, ...]] = {
    "*/selftests/mm/*": ("vm_util.c", "thp_settings.c"),
    "*/selftests/mm/uffd-*": ("uffd-common.c",),
}
"""Additional sources of programs, from the same Makefile."""

_REPAIRS: Mapping[str, tuple[str, ...]] = {
    "*/selftests/mm/ksm_functional_tests": (str(SELFTESTS / "ksm_exec.c"), "-Wl,--wrap=execv"),
    "*/selftests/mm/migration": ("-I", str(SELFTESTS / "numa"), str(SELFTESTS / "numa/numa.c")),
    "*/selftests/mm/protection_keys": ("-mxsave",),
}
"""Options that programs need to compile or to be correct; the reason is in their source, or in the
kernel's Makefile."""

_HARNESS = "tools/testing/selftests/kselftest.h"
"""Header that is included first, as khugepaged.c of 6.12.117 uses it without including it."""

_LOCAL_CONFIG = "local_config.h"
"""A header that is left empty, so that programs do not use liburing even if it is installed."""


# --- What is run -----------------------------------------------------------------------


@dataclass(frozen=True)
class Selftests:
    """A file of kernel/selftests. Every entry has its reason there."""

    modules: tuple[str, ...]
    """Kernel modules, loaded before the programs; a KUnit module runs its tests then."""
    programs: tuple[str, ...]
    """Paths of programs without the suffix of their source; below the kernel tree, or absolute."""
    words: tuple[str, ...]
    """Kernel parameters that the tests need."""
    skips: Mapping[str, str]
    """Patterns of names of tests that may be skipped, and why."""
    added: Mapping[str, str]
    """Patterns of names of tests that only the series has, and why."""
    swap: str | None = None
    """The guest's block device that is used for swap."""
    files: tuple[str, ...] = ()
    """Paths of files that must exist in the guest and not be empty."""
    unsteady: Mapping[str, str] = field(default_factory=dict)
    """Patterns of names of tests whose result is not reliable in an emulated guest, and why."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of tests in the order in which they run."""
        return (*self.modules, *(PurePosixPath(program).name for program in self.programs))

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the tests in the guest, in the same order."""
        return tuple(str(IN_GUEST / name) for name in self.names)


def read_selftests(file: Path) -> Selftests:
    """Read a list: lines `KIND VALUE - REASON`, continued by indented lines, # begins a comment.

    Raises BadUsage with every fault of the file.
    """
    entries: dict[str, dict[str, str]] = {
        kind: {}
        for kind in ("module", "program", "file", "word", "swap", "skip", "added", "unsteady")
    }
    faults = []
    for number, text in _entries(file.read_text(encoding="utf-8")):
        match = re.fullmatch(r"(\S+)\s+(\S+)\s+-\s+(.+)", text)
        if not match:
            faults.append(f"{file}:{number}: not `KIND VALUE - REASON`: {text}")
        elif match[1] not in entries:
            faults.append(f"{file}:{number}: {match[1]}: must be one of {', '.join(entries)}")
        elif match[2] in entries[match[1]]:
            faults.append(f"{file}:{number}: {match[1]} {match[2]}: named twice")
        else:
            entries[match[1]][match[2]] = match[3]
    if len(entries["swap"]) > 1:
        faults.append(f"{file}: swap {', '.join(entries['swap'])}: one device at most")
    if faults:
        raise BadUsage("\n".join(faults))
    return Selftests(
        modules=tuple(entries["module"]),
        programs=tuple(entries["program"]),
        words=tuple(entries["word"]),
        skips=entries["skip"],
        added=entries["added"],
        swap=next(iter(entries["swap"]), None),
        files=tuple(entries["file"]),
        unsteady=entries["unsteady"],
    )


def _entries(text: str) -> list[tuple[int, str]]:
    """Return entries with the line at which each begins, with continuation lines joined."""
    found: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        if line[0].isspace() and found:
            first, so_far = found[-1]
            found[-1] = (first, f"{so_far} {line.strip()}")
        else:
            found.append((number, line.strip()))
    return found


def build_selftests(tree: Path, selftests: Selftests, work: Path) -> dict[str, Path]:
    """Compile the programs from a variant's tree; return what goes into the initramfs.

    Keys are paths in the guest. Modules are not included: they belong to the kernel and are put
    into /modules. Raises ReamError with the compiler's first error if a program does not compile.
    """
    runner = work / "run-selftest"
    gcc = arch_built(tree / BUILD).tool("gcc")
    run(_compile(SELFTESTS / "run.c", runner, work, gcc=gcc))
    files = dict.fromkeys((*selftests.paths, *selftests.files), runner)
    (work / _LOCAL_CONFIG).touch()
    headers = ("-I", str(tree), "-I", str(tree / "tools/include/uapi"), "-I", str(work))
    for program in selftests.programs:
        binary = work / PurePosixPath(program).name
        shared = shared_sources(tree, program)
        options = (*headers, *(("-include", str(tree / _HARNESS)) if shared else ()))
        last = (*shared, *_of(program, _REPAIRS), *_LIBRARIES)
        source = tree / f"{program}.c"
        if not source.exists():
            source = _brought(work) / f"{program}.c"
            options = (*options, "-I", str((tree / program).parent))
        run(_compile(source, binary, work, options, last, gcc=gcc))
        files[str(IN_GUEST / "bin" / binary.name)] = binary
    return files


def _brought(work: Path) -> Path:
    """Return a folder with programs that the series `selftests` adds to kernels that lack them."""
    to = work / "brought"
    if not to.exists():
        to.mkdir()
        apply(load_series(SERIES / "selftests").patches, to, only="*.[ch]")
    return to


def _of(program: str, table: Mapping[str, tuple[str, ...]]) -> list[str]:
    return [word for glob, words in table.items() if fnmatchcase(program, glob) for word in words]


def shared_sources(tree: Path, program: str) -> tuple[str, ...]:
    """Return the additional sources of a program of the kernel's."""
    folder = (tree / program).parent
    return tuple(str(folder / name) for name in _of(program, _SHARED))


def _compile(
    source: Path,
    to: Path,
    work: Path,
    headers: tuple[str, ...] = (),
    libraries: tuple[str, ...] = (),
    *,
    gcc: str,
) -> Command:
    argv = (gcc, *_FLAGS, *headers, "-o", str(to), str(source), *libraries)
    return Command(argv, work, COMPILE_S)


# --- What the console says -------------------------------------------------------------

# Output of init may still be queued when the kernel writes, so a message of the kernel may follow
# other text in a line. It is always whole. Messages of init are also sent on the port.
_MESSAGE = re.compile(r".*?\[ *\d+\.\d{6}\](?:\[ *[TC]\d+\])? (?P<indent> *)(?P<text>.*)")
_PLAN = re.compile(r"1\.\.(\d+)(?:\s*#.*)?")
_SUBTEST = re.compile(r"# Subtest: (.+)")
_PROGRAM = re.compile(r"# Program: (\S+)")
"""Line that kernel/selftests/run.c prints before each program."""
_NOW = re.compile(r"# \[(?:RUN|INFO)\] (.+)")
"""Line that names the subject of the next results of a program of mm/: of cow and mkdirty."""

_COLOUR = re.compile(r"\x1b\[(\d*)m")
_UFFD = re.compile(r"Testing (?P<name>.+?)\.\.\. .*?\b(?P<word>done|skipped|failed)\b.*")
"""uffd-unit-tests.c: uffd_test_start(), then _pass(), _skip() or _fail()."""
_UFFD_WORDS = {"done": "pass", "skipped": "skip", "failed": "fail"}
_KHUGEPAGED = re.compile(r"Run test: (.+)")
"""Line of TEST() in khugepaged.c, which shows results in colours."""
_RED, _YELLOW = "31", "33"
_RESULT = re.compile(
    r"(?P<not>not )?ok (?P<number>\d+)(?: -)?(?: (?P<name>[^#]*?))?\s*"
    r"(?:# (?P<directive>[A-Za-z]+).*)?"
)


@dataclass
class _Plan:
    """Numbers of planned results and of those that were read."""

    indent: int
    nr_planned: int
    name: str | None
    of_program: bool = False
    nr_seen: int = 0


@dataclass
class _Parser:
    """Parses the console. Lines that are neither plan nor result are ignored."""

    found: dict[str, str] = field(default_factory=dict)
    open: list[_Plan] = field(default_factory=list)
    subtest: str | None = None
    program: str | None = None
    """The running program, until its plan."""
    now: str | None = None
    without_plan: str | None = None
    """The running test of a program that prints no plan, only text."""

    def message(self, indent: int, text: str) -> None:
        if program := _PROGRAM.fullmatch(text):
            self._close(0)
            self.program, self.now, self.without_plan = program[1], None, None
        elif subtest := _SUBTEST.fullmatch(text):
            self.subtest = subtest[1]
        elif plan := _PLAN.fullmatch(text):
            self._close(indent)
            name = self.subtest or self.program
            self.open.append(_Plan(indent, int(plan[1]), name, of_program=not self.subtest))
            self.subtest = self.program = None
        elif now := _NOW.fullmatch(text):
            self.now = now[1]
        elif result := _RESULT.fullmatch(text):
            self._close(indent + 1)
            self._result(indent, result)
        elif text.startswith("Bail out!"):
            # cow ends with this if a test failed, when all tests have given their results.
            if not self.open or any(plan.nr_seen < plan.nr_planned for plan in self.open):
                raise ReamError(f"the tests gave up: {text}")
        elif self.program:
            self._words(self.program, text)

    def _words(self, program: str, text: str) -> None:
        """Parse a line of a program that has no plan, or not yet."""
        plain = _COLOUR.sub("", text)
        if test := _KHUGEPAGED.fullmatch(plain):
            self.without_plan = f"{program}.{test[1]}"
            self._keep(self.without_plan, PASS)
        elif self.without_plan:
            colours = _COLOUR.findall(text)
            if _RED in colours:
                self.found[self.without_plan] = FAIL
            elif _YELLOW in colours and self.found[self.without_plan] == PASS:
                self.found[self.without_plan] = SKIP
        elif test := _UFFD.fullmatch(plain):
            self._keep(f"{program}.{test['name']}", _UFFD_WORDS[test["word"]])

    def _close(self, indent: int) -> None:
        """Close plans with this indentation or more; they must be complete."""
        while self.open and self.open[-1].indent >= indent:
            plan = self.open.pop()
            if plan.nr_seen != plan.nr_planned:
                of = f" of {plan.name}" if plan.name else ""
                raise ReamError(
                    f"{plan.nr_seen} of {counted(plan.nr_planned, 'test')}{of} gave a result"
                )

    def _result(self, indent: int, result: re.Match[str]) -> None:
        parents = [plan.name for plan in self.open if plan.name]
        own = result["name"] or (None if self.now else result["number"])
        name = ".".join([*parents, ": ".join(filter(None, (self.now, own)))])
        if not self.open or self.open[-1].indent != indent:
            raise ReamError(f"{name}: a result without a plan")
        plan = self.open[-1]
        plan.nr_seen += 1
        if int(result["number"]) != plan.nr_seen or plan.nr_seen > plan.nr_planned:
            raise ReamError(
                f"{name}: result {result['number']} comes as number {plan.nr_seen}"
                f" of {plan.nr_planned}"
            )
        if plan.of_program and name in self.found:
            name += f" ({result['number']})"  # details are in other lines
        self._keep(name, _meaning(result))

    def _keep(self, name: str, meaning: str) -> None:
        if name in self.found:
            raise ReamError(f"{name}: two results, so one of them would be lost")
        self.found[name] = meaning

    def end(self) -> dict[str, str]:
        self._close(0)
        return self.found


def _meaning(result: re.Match[str]) -> str:
    if (result["directive"] or "").upper() == "SKIP":
        return SKIP
    return FAIL if result["not"] else PASS


def results(console: Iterable[str]) -> dict[str, str]:
    """Return every test's result by name: pass, fail or skip. A suite's name comes before a dot.

    console: lines of a boot. Only kernel messages are read, which begin with their time;
    kernel/selftests/run.c writes every line of a program as a kernel message.
    Raises ReamError if a plan is not complete, or a name has two results.
    Source: Documentation/dev-tools/ktap.rst.
    """
    parser = _Parser()
    for line in console:
        if message := _MESSAGE.fullmatch(line.rstrip()):
            parser.message(len(message["indent"]), message["text"])
    return parser.end()


# --- Both, in a guest ------------------------------------------------------------------


def run_selftests(
    machine: GuestMachine,
    image: Image,
    selftests: Selftests,
    *,
    work: Path,
    log: Path,
    overlook: str | None = None,
    deadline_s: float = DEADLINE_S,
    silence_s: float = SILENCE_S,
) -> dict[str, str]:
    """Boot a kernel, run the tests of a list, and return every test's result.

    The machine must have memory up to 5 GiB, since kernel parameters of a list reserve some above
    4 GiB. work: a directory for builds and sockets. log: receives the console. overlook: a pattern
    of splats that do not fail the boot; the caller checks them in the log.
    Raises ReamError if the kernel complains, or a program ends without results of its tests.
    """
    missing = [name for name in selftests.modules if name not in image.modules]
    if missing:
        raise ReamError(f"{', '.join(missing)}: no such module in this kernel, and the list has it")
    initramfs = build_initramfs(
        work / "selftests.cpio",
        gen_init_cpio=image.gen_init_cpio,
        init=build_init(work, arch=image.arch),
        modules={name: image.modules[name] for name in selftests.modules},
        programs=build_selftests(image.tree, selftests, work),
        work=work,
    )
    port, qmp = work / "port", work / "qmp"
    argv = qemu_command(
        machine,
        kernel=image.bootable,
        initramfs=initramfs,
        append=selftests.words,
        init=(
            *("experiment=selftests", f"run={','.join(selftests.paths)}"),
            *((f"swap={selftests.swap}",) if selftests.swap else ()),
        ),
        port=port,
        qmp=qmp,
    )
    with boot(
        argv, log=log, port=port, qmp=qmp, deadline_s=deadline_s, silence_s=silence_s
    ) as guest:
        if overlook is not None:
            guest.overlook(overlook)
        exits = _exits(guest)
    with log.open(encoding="utf-8", errors="replace") as console:
        found = results(console)
    faults = [
        f"{path}: {f'exit {exits[path]}' if path in exits else 'was not run'}"
        for path in selftests.paths
        if exits.get(path) not in (0, EXIT_SKIP) and not _told(path, found)
    ]
    if faults:
        raise ReamError(f"{'; '.join(faults)}; the console is in {log}")
    return found | _wholes(selftests, exits, found)


def _exits(guest: Guest) -> dict[str, int]:
    """Return the exit status of each program, as the guest reports it."""
    told = (message.get("test") for message in guest.messages())
    return {test["name"]: test["exit"] for test in told if test}


def _wholes(
    selftests: Selftests, exits: Mapping[str, int], found: Mapping[str, str]
) -> dict[str, str]:
    """Return results of programs without results of single tests, by their exit status."""
    names = [PurePosixPath(program).name for program in selftests.programs]
    return {
        name: SKIP if exits[str(IN_GUEST / name)] == EXIT_SKIP else PASS
        for name in names
        if not any(test.startswith(f"{name}.") for test in found)
    }


def _told(path: str, found: Mapping[str, str]) -> bool:
    """Whether a program reported which of its tests failed."""
    tests = f"{PurePosixPath(path).name}."
    return any(name.startswith(tests) and result == FAIL for name, result in found.items())


# --- What it means ---------------------------------------------------------------------


def differences(
    base: Mapping[str, str], series: Mapping[str, str], selftests: Selftests
) -> tuple[str, ...]:
    """Return a line for each fault of a series; empty if its results are those of the base.

    Faults are a test that fails on either of the two, a test that only one of them has, and a test
    that is skipped without a reason in the list.
    """
    base, series = (
        {name: found[name] for name in found if not listed(name, selftests.unsteady)}
        for found in (base, series)
    )
    said = []
    for where, found in (("base", base), ("series", series)):
        for name, result in found.items():
            if result == FAIL:
                said.append(f"{name}: fails on the {where}")
            elif result == SKIP and not listed(name, selftests.skips):
                said.append(f"{name}: skipped on the {where}, and the list gives no reason")
    said += [f"{name}: the series has lost it" for name in base if name not in series]
    said += [
        f"{name}: only the series has it, and the list does not say so"
        for name in series
        if name not in base and not listed(name, selftests.added)
    ]
    said += [
        f"{name}: {base[name]} on the base, {series[name]} on the series"
        for name in base
        if name in series and base[name] != series[name]
    ]
    said += [
        f"{pattern}: the series should have it, and has not"
        for pattern in selftests.added
        if not any(fnmatchcase(name, pattern) for name in series)
    ]
    return tuple(said)


def listed(name: str, patterns: Iterable[str]) -> bool:
    """Whether one of a list's patterns matches the name of a test."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)
