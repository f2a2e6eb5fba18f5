# SPDX-License-Identifier: GPL-2.0-only
"""The receipt: what another person needs to know about a run, and nothing about its owner.

It contains no host name, no user name, and no path inside a home directory.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from pydantic import Field

from ream import __version__
from ream.command import Command, run
from ream.counted import counted
from ream.errors import ReamError
from ream.record.machine import Conditions, Machine
from ream.record.noise import Noise
from ream.record.record import SCHEMA
from ream.values import Scalar, Sealed, Texts, Tuple, Value

SHORT_ID = 12
"""Hex digits of an id that tables print; the receipt has all of them."""


class PatchLike(Protocol):
    """The properties of kernel.series.Patch that a receipt needs."""

    @property
    def name(self) -> str: ...
    @property
    def subject(self) -> str: ...
    @property
    def sha256(self) -> str: ...
    @property
    def diff_sha256(self) -> str: ...


class SeriesLike(Protocol):
    """The properties of kernel.series.Series that a receipt needs."""

    @property
    def name(self) -> str: ...
    @property
    def patches(self) -> Iterable[PatchLike]: ...
    @property
    def id(self) -> str: ...
    @property
    def diff_id(self) -> str: ...


class PatchEntry(Value):
    """A patch of a series."""

    name: str
    subject: str
    sha256: str
    """Digest of the mail as received."""
    diff_sha256: str | None = None
    """Digest of the diff alone, which identifies the patch. None in older records."""


class SeriesEntry(Value):
    """A series of a variant."""

    name: str
    id: str
    """KCIDB's patchset hash: sha256 over the newline-terminated sha256s of the patches."""
    diff_id: str | None = None
    """The same hash over the digests of their diffs, which identifies the series. None in older
    records."""
    patches: Tuple[PatchEntry]

    @classmethod
    def of(cls, series: SeriesLike) -> Self:
        """The entry of a series."""
        return cls(
            name=series.name,
            id=series.id,
            diff_id=series.diff_id,
            patches=tuple(
                PatchEntry(
                    name=patch.name,
                    subject=patch.subject,
                    sha256=patch.sha256,
                    diff_sha256=patch.diff_sha256,
                )
                for patch in series.patches
            ),
        )


class BuiltTree(Value):
    """A kernel source other than the run's own, described as in BuiltKernel."""

    tree: str
    tree_key: str
    version: str
    config: str | None = None
    """Options that its kernel was configured with in addition to ours."""


_ARCHITECTURE = re.compile(r" for (\w+)\b")
"""The architecture in the label of a tree; that of x86-64 names none."""


def architecture_of(tree: str) -> str:
    """The architecture of the kernels that a tree's label describes, such as arm64 or x86_64."""
    found = _ARCHITECTURE.search(tree)
    return found[1] if found else "x86_64"


class BuiltKernel(Value):
    """The kernels of a run: their sources, series, configuration and compiler."""

    tree: str
    """The tree's label: a package and its version, or what --tree was given."""
    tree_key: str
    version: str
    """The version, such as "6.12.117"."""
    compiler: str
    config_sha256: str
    config: str | None = None
    """Requested options in addition to ours, as a configuration fragment; None without any."""
    variants: Sealed[str, Tuple[SeriesEntry]]
    """The series of each variant, in order; `before` may have none."""
    compared_with: Sealed[str, str] = Field(default={}, validate_default=True)
    """For each given series, the variant of the tree that it applies to."""
    trees: Sealed[str, BuiltTree] = Field(default={}, validate_default=True)
    """Kernel sources of variants that do not use the run's source or configuration."""

    @property
    def architecture(self) -> str:
        """The architecture of these kernels."""
        return architecture_of(self.tree)


class GuestKind(Value):
    """The properties in which guests of one run can differ."""

    icount: bool
    cpus: int

    def words(self, accel: str) -> str:
        """The kind in words; accel: the accelerator of the guests."""
        how = "KVM"
        if accel == "tcg":
            how = "TCG, instructions counted, no time" if self.icount else "TCG, times emulated"
        return f"{how}, {counted(self.cpus, 'CPU')}"


class GuestFacts(Value):
    """The emulator or hypervisor that ran the kernels of the vm stage."""

    qemu: str
    """The version as QEMU prints it."""
    accel: Literal["kvm", "tcg"]
    accel_reason: str
    """The reason for this accelerator."""
    icount: bool
    """Whether the clock of every guest counts instructions, one per nanosecond."""
    cpus: int
    memory_bytes: Sealed[str, int]
    """Memory of a guest in bytes, by device."""
    commands: Sealed[str, str]
    """QEMU's command line of a boot, by device, with file names instead of paths."""
    kernels: Sealed[str, str]
    """SHA-256 of the kernel image, by variant."""
    kinds: Sealed[str, GuestKind] = Field(default={}, validate_default=True)
    """Kinds of guests by device, if guests differ; `cpus` is then the first guest's."""

    def line(self) -> str:
        """The guests in one line, for the head of a table."""
        kinds: dict[GuestKind, list[str]] = {}
        for name, kind in self.kinds.items():
            kinds.setdefault(kind, []).append(name)
        if not kinds:
            return f"{self.qemu}, {GuestKind(icount=self.icount, cpus=self.cpus).words(self.accel)}"
        each = (f"{kind.words(self.accel)} ({', '.join(its)})" for kind, its in kinds.items())
        return f"{self.qemu}: {'; '.join(each)}"


class CountFacts(Value):
    """The emulator that counted the samples of a run that is not timed."""

    emulator: str
    """The version as the emulator prints it."""
    cpu: str
    """The CPU model and features that the kernels detected."""
    cpus: int

    def line(self) -> str:
        """The emulator in one line, for the head of a table."""
        return f"{self.emulator}, -cpu {self.cpu}, {counted(self.cpus, 'CPU')}"


class Ream(Value):
    """The version of ream that measured."""

    version: str
    commit: str | None
    dirty: bool | None
    """Whether the checkout contained uncommitted changes."""

    def line(self) -> str:
        """The version and commit in one line, for the head of a table."""
        if self.commit is None:
            return self.version
        return f"{self.version} ({self.commit[:SHORT_ID]}{', with changes' if self.dirty else ''})"


class Settings(Value):
    """The request for a run."""

    command: str
    """The command line that repeats it."""
    seed: int
    launches: int
    rounds: Sealed[str, int]
    """The number of rounds in each launch, by row."""
    options: Sealed[str, Scalar | None] = Field(default={}, validate_default=True)
    cell: str | None = None
    """The id of the plan's cell that this run measured."""
    resumed: Texts = ()
    """When the run was resumed, in UTC; later rounds are of another process."""
    ended: str | None = None
    """How a run ended that measured until its intervals were narrow enough."""


class Receipt(Value):
    """Everything about a run that another person needs to know."""

    machine: Machine
    conditions: Conditions
    kernel: BuiltKernel
    ream: Ream
    settings: Settings
    benchmark: str | None = None
    """Digest of the sources that measure. Numbers with another digest are of another benchmark."""
    summary_id: str | None = None
    """Digest of the sources and tables from which run.json was computed."""
    guest: GuestFacts | None = None
    count: CountFacts | None = None
    """The emulator that counted, if the run was not timed."""
    symbols: Sealed[str, Any] = Field(default={}, validate_default=True)
    """The object that each timed function came from, in the native stage."""
    stubs: Sealed[str, Any] = Field(default={}, validate_default=True)
    """Stubs that were called, with counts, and declared data, in the native stage."""
    cpu_clock_step_ns: int | None = None
    """The step of the clock of CPU time in the native stage, in ns. Linux lets the clock of a
    process whose CPU time is limited advance by ticks only, as in records without this field."""
    warnings: Texts = ()
    """Warnings about a possible bias, each with its number and a remedy."""
    noise: Noise | None = None
    """The summary of a watch over the run; noise.jsonl has all of its observations."""

    def to_object(self) -> dict[str, Any]:
        """The object of receipt.json."""
        parts = self.model_dump(mode="json")
        return {"schema": SCHEMA, **{name: anonymous(part) for name, part in parts.items()}}

    def patches_line(self) -> str:
        """The series of each variant with the first digits of their ids."""
        return "; ".join(
            f"{variant}: "
            + " + ".join(
                f"{one.name} ({counted(len(one.patches), 'patch', 'patches')}, {one.id[:SHORT_ID]})"
                for one in series
            )
            for variant, series in self.kernel.variants.items()
            if series
        )


def read_ream(checkout: Path) -> Ream:
    """This version of ream, and its commit if `checkout` is our own git work tree."""

    def git(*words: str) -> str:
        return run(Command(("git", *words), cwd=checkout, deadline_s=10)).strip()

    try:
        # A copy unpacked inside the work tree of another project must not name its commit.
        if Path(git("rev-parse", "--show-toplevel")).resolve() != checkout.resolve():
            return Ream(version=__version__, commit=None, dirty=None)
        return Ream(
            version=__version__,
            commit=git("rev-parse", "--verify", "HEAD"),
            dirty=git("status", "--porcelain") != "",
        )
    except ReamError:  # no git, no commit, or git does not trust the directory's owner
        return Ream(version=__version__, commit=None, dirty=None)


_PATH_BEGINS = r"(?<![\w.~-])"
_HOMES = re.compile(_PATH_BEGINS + r"(?:/home|/Users|/var/home)/[^/\s:]+")


def anonymous(value: Any) -> Any:
    """The same value with every home directory in its texts replaced by ~."""
    if isinstance(value, str):
        home = str(Path.home())
        if home != "/":
            value = re.sub(rf"{_PATH_BEGINS}{re.escape(home)}(?=/|$|[\s:,;'\")])", "~", value)
        return _HOMES.sub("~", value)
    if isinstance(value, Mapping):
        return {anonymous(key): anonymous(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [anonymous(inner) for inner in value]
    return value
