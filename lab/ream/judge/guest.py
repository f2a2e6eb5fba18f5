# SPDX-License-Identifier: GPL-2.0-only
"""Runs the kernel's own tests with and without a series, in guests with debugging kernels.

kernel/config/vm-debug.config enables KASAN, lockdep and the assertions of mm. The tests are listed
in kernel/selftests, a list for each kind of operation; an experiment names its list. A series is
wrong if one test passes without it and fails with it, twice.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from ream.counted import counted
from ream.errors import CannotRunHere, KernelComplained, ReamError, VerificationFailed
from ream.experiment import named
from ream.folders import names
from ream.judge.reach import WholeReach, shortened
from ream.kernel.image import Image, build_image
from ream.kernel.series import Patch
from ream.kernel.source import Tree
from ream.paths import KERNEL_CONFIG
from ream.progress import Reporter
from ream.stage.accel import ask_kvm, choose_accel
from ream.stage.qemu import GuestMachine, GuestNode
from ream.stage.selftests import (
    FAIL,
    PASS,
    SELFTESTS,
    Selftests,
    listed,
    read_selftests,
    run_selftests,
)

FRAGMENTS = tuple(KERNEL_CONFIG / f"{name}.config" for name in ("vm", "vm-debug"))

GIB = 1 << 30
CPUS = 3
NODES = (GuestNode(5 * GIB, "0-1"), GuestNode(3 * GIB, "2"))
"""Nodes that suffice for all lists: two with CPUs, and memory above 4 GiB in the first."""

DEADLINE_S = 5400.0
SILENCE_S = 900.0
"""Seconds without output after which a guest is given up. A debugging kernel takes about three
times as long as another, and TCG ten times."""


def lists_of(reach: WholeReach) -> tuple[str, ...]:
    """Return the lists of tests to run for a series.

    These are the lists of the experiments whose code it changes. If it changes no hosted code, all
    lists are returned, since no experiment tests the series.
    """
    changed = [one.experiment for one in reach.experiments if one.rows or one.functions]
    found = [named(name).selftests for name in changed or names()]
    return tuple(dict.fromkeys(name for name in found if name is not None))


def run_guests(
    reach: WholeReach,
    before: tuple[Tree, Sequence[Patch]],
    after: tuple[Tree, Sequence[Patch]],
    *,
    cache: Path,
    logs: Path,
    reporter: Reporter,
) -> list["Told"]:
    """Run the lists of tests for a series in a guest without it and in one with it.

    before, after: the kernel source and the patches on it. logs: a folder for consoles.
    Raises VerificationFailed if a test fails, or the kernel complains, only with the series;
    CannotRunHere without QEMU.
    """
    accel, cpu, why = choose_accel("auto", probe=lambda: ask_kvm(cache))
    reporter.step(f"guests run under {accel.upper()}: {why}")
    images = []
    for where, (tree, patches) in (("without", before), ("with", after)):
        try:
            images.append(
                build_image(
                    tree, patches, cache=cache, fragments=FRAGMENTS, modules=(), reporter=reporter
                )
            )
        except CannotRunHere:
            raise
        except ReamError as cause:
            why = f"the debug kernel {where} the series does not build: {_first(cause)}"
            return [Told("guest", why, decided=False)]
    machine = GuestMachine(accel, cpus=CPUS, memory_bytes=8 * GIB, nodes=NODES, cpu=cpu)
    told = []
    for name in lists_of(reach):
        tests = read_selftests(SELFTESTS / f"{name}.list")
        told.append(_Guests(machine, tests, name, logs, reporter).compare(*images))
    return told


@dataclass(frozen=True)
class Told:
    """The result of one list of tests."""

    name: str
    line: str
    """How many tests give the same result, or why there is no result."""
    decided: bool = True


COMPLAINT_LINES = 12


@dataclass(frozen=True)
class _Guests:
    """Runs the guests of one list of tests."""

    machine: GuestMachine
    tests: Selftests
    name: str
    logs: Path
    reporter: Reporter

    def compare(self, old: Image, new: Image) -> Told:
        """Compare the results of two kernels.

        Raises VerificationFailed with the tests and complaints that show the series wrong.
        """
        try:
            before = self._run(old, "without")
        except CannotRunHere:
            raise
        except ReamError as cause:
            return self._open(f"cannot be run without the series: {_first(cause)}")
        try:
            return self._compare(before, new)
        except (CannotRunHere, VerificationFailed):
            raise
        except ReamError as cause:  # an error of a tool or a test, not of the kernel
            return self._open(f"cannot be run with the series: {_first(cause)}")

    def _open(self, why: str) -> Told:
        return Told(self.name, why, decided=False)

    def _compare(self, before: Mapping[str, str], new: Image) -> Told:
        first = self._found(before, new, "with")
        if not first.against:
            return Told(self.name, first.line)
        # Tests race with an emulated machine's clock, so a single failure may be chance.
        suspects = self if first.complaint else replace(self, tests=only(self.tests, first.failed))
        again = suspects._found(before, new, "with-again")
        if seen := first.seen_again(again):
            log = self.logs / f"{self.name}-with.log"
            lines = [f"{self.name}: {one}" for one in seen]
            raise VerificationFailed("\n".join([*lines, f"the console is {log}"]))
        if first.complaint:
            return Told(self.name, f"{again.line}; another time: {shortened(first.against)}")
        said_once = f"{first.line}; not when repeated: {shortened(first.against)}"
        return Told(self.name, said_once)

    def _found(self, before: Mapping[str, str], image: Image, where: str) -> "_Found":
        try:
            after = self._run(image, where)
        except KernelComplained as cause:
            return _Found((), str(cause), "")
        return _Found(failed(before, after, tuple(self.tests.unsteady)), "", said(before, after))

    def _run(self, image: Image, where: str) -> dict[str, str]:
        self.reporter.step(f"{self.name}: the kernel's own tests, {where.replace('-', ' ')} it")
        with tempfile.TemporaryDirectory(prefix="ream-guest-") as work:
            return run_selftests(
                self.machine,
                image,
                self.tests,
                work=Path(work),
                log=self.logs / f"{self.name}-{where}.log",
                deadline_s=DEADLINE_S,
                silence_s=SILENCE_S,
            )


@dataclass(frozen=True)
class _Found:
    """Faults in one guest with the series."""

    failed: tuple[str, ...]
    complaint: str
    """The kernel's complaint on the console; empty if there was none."""
    line: str

    @property
    def against(self) -> tuple[str, ...]:
        """Lines that show the series wrong: failed tests, and the start of the complaint."""
        tests = (f"{name} passes without the series and fails with it" for name in self.failed)
        return (*tests, *self.complaint.splitlines()[:COMPLAINT_LINES])

    def seen_again(self, again: "_Found") -> tuple[str, ...]:
        """Return what failed both times; if the kernel complained both times, the first lines."""
        if self.complaint and again.complaint:
            return self.against
        both = tuple(one for one in self.failed if one in again.failed)
        return replace(self, failed=both, complaint="").against


def _first(cause: ReamError) -> str:
    return str(cause).splitlines()[0]


def failed(
    before: Mapping[str, str], after: Mapping[str, str], unsteady: tuple[str, ...]
) -> tuple[str, ...]:
    """Return tests that pass without the series and fail with it.

    unsteady: patterns of the names of tests whose result is not reliable in an emulated guest.
    """
    return tuple(
        name
        for name, result in after.items()
        if result == FAIL and before.get(name) == PASS and not listed(name, unsteady)
    )


def only(tests: Selftests, failed: Sequence[str]) -> Selftests:
    """Return the list with only the programs whose tests failed.

    It is the whole list if one of the failed tests belongs to a module, not to a program.
    """
    suspects = {name.split(".")[0] for name in failed}
    programs = [one for one in tests.programs if PurePosixPath(one).name in suspects]
    if len(programs) < len(suspects):
        return tests
    return replace(tests, modules=(), programs=tuple(programs))


def said(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return a line with how many tests give the same result, and which do not."""
    passed = sum(after.get(name) == PASS == result for name, result in before.items())
    text = f"{counted(passed, 'test')} of {len(before)} pass with the series as without"
    other = [
        f"{name} ({before.get(name, 'none')}, {after.get(name, 'none')})"
        for name in (*before, *(name for name in after if name not in before))
        if before.get(name) != after.get(name)
    ]
    return text + (f"; otherwise: {shortened(other)}" if other else "; no result differs")
