# SPDX-License-Identifier: GPL-2.0-only
"""The receipt: what another person needs to know about a run, and nothing about its owner.

No host name, no user name, and no path inside anybody's home are in it.
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
"""Hex digits that tell two series apart in a table; the receipt has all of them."""


class PatchLike(Protocol):
    """What we need of kernel.series.Patch."""

    @property
    def name(self) -> str: ...
    @property
    def subject(self) -> str: ...
    @property
    def sha256(self) -> str: ...
    @property
    def diff_sha256(self) -> str: ...


class SeriesLike(Protocol):
    """What we need of kernel.series.Series."""

    @property
    def name(self) -> str: ...
    @property
    def patches(self) -> Iterable[PatchLike]: ...
    @property
    def id(self) -> str: ...
    @property
    def diff_id(self) -> str: ...


class PatchEntry(Value):
    name: str
    subject: str
    sha256: str
    """Digest of the mail as it came."""
    diff_sha256: str | None = None
    """Digest of the diff alone, which identifies the patch. None in older records."""


class SeriesEntry(Value):
    name: str
    id: str
    """KCIDB's patchset hash: sha256 over the newline-terminated sha256s of the patches."""
    diff_id: str | None = None
    """The same over those of their diffs: which series it is. None in older records."""
    patches: Tuple[PatchEntry]

    @classmethod
    def of(cls, series: SeriesLike) -> Self:
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
    """A kernel source, as BuiltKernel has it."""

    tree: str
    tree_key: str
    version: str
    config: str | None = None
    """Options over ours that its kernel was configured with."""


class BuiltKernel(Value):
    """What was built, from what, with what."""

    tree: str
    """The tree's label: a package and its version, or what --tree was given."""
    tree_key: str
    version: str
    """As "6.12.117"."""
    compiler: str
    config_sha256: str
    config: str | None = None
    """Options over ours that were asked for, as a fragment; None: none were."""
    variants: Sealed[str, Tuple[SeriesEntry]]
    """The series of each variant, in order; before has none."""
    compared_with: Sealed[str, str] = Field(default={}, validate_default=True)
    """For each given series, the variant of the tree that it applies to."""
    trees: Sealed[str, BuiltTree] = Field(default={}, validate_default=True)
    """Kernel sources of variants that do not use the run's source or configuration."""


class GuestKind(Value):
    """In what the guests of a run differ."""

    icount: bool
    cpus: int

    def words(self, accel: str) -> str:
        how = "KVM"
        if accel == "tcg":
            how = "TCG, instructions counted, no time" if self.icount else "TCG, times emulated"
        return f"{how}, {counted(self.cpus, 'CPU')}"


class GuestFacts(Value):
    """What ran the kernels of the vm stage."""

    qemu: str
    """Its own words for its version."""
    accel: Literal["kvm", "tcg"]
    accel_reason: str
    """Why this one."""
    icount: bool
    """Whether the guest's clock counts instructions, one a nanosecond: every guest's."""
    cpus: int
    memory_bytes: Sealed[str, int]
    """Memory of a guest, by device."""
    commands: Sealed[str, str]
    """QEMU's command line of a boot, by device; files without their directories."""
    kernels: Sealed[str, str]
    """SHA-256 of the kernel image, by variant."""
    kinds: Sealed[str, GuestKind] = Field(default={}, validate_default=True)
    """Kinds of guests by device, where guests differ; `cpus` is then the first guest's."""

    def line(self) -> str:
        """One line of a table's head."""
        kinds: dict[GuestKind, list[str]] = {}
        for name, kind in self.kinds.items():
            kinds.setdefault(kind, []).append(name)
        if not kinds:
            return f"{self.qemu}, {GuestKind(icount=self.icount, cpus=self.cpus).words(self.accel)}"
        each = (f"{kind.words(self.accel)} ({', '.join(its)})" for kind, its in kinds.items())
        return f"{self.qemu}: {'; '.join(each)}"


class CountFacts(Value):
    """What counted the samples of a run that is not timed."""

    emulator: str
    """Its own words for its version."""
    cpu: str
    """The model and features that kernels saw."""
    cpus: int

    def line(self) -> str:
        """One line of a table's head."""
        return f"{self.emulator}, -cpu {self.cpu}, {counted(self.cpus, 'CPU')}"


class Ream(Value):
    version: str
    commit: str | None
    dirty: bool | None
    """Whether the checkout held changes that are in no commit."""

    def line(self) -> str:
        if self.commit is None:
            return self.version
        return f"{self.version} ({self.commit[:SHORT_ID]}{', with changes' if self.dirty else ''})"


class Settings(Value):
    """How the run was asked for."""

    command: str
    """The line that repeats it."""
    seed: int
    launches: int
    rounds: Sealed[str, int]
    """Per row, in each launch."""
    options: Sealed[str, Scalar | None] = Field(default={}, validate_default=True)
    cell: str | None = None
    """The id of the cell of a plan for several machines that this run did."""
    resumed: Texts = ()
    """When it was gone on with after an interruption, in UTC: those rounds are of another start."""
    ended: str | None = None
    """Where it measured until intervals were narrow enough: how that ended."""


class Receipt(Value):
    machine: Machine
    conditions: Conditions
    kernel: BuiltKernel
    ream: Ream
    settings: Settings
    benchmark: str | None = None
    """Digest of the sources that measure; numbers of another one are of another benchmark."""
    summary_id: str | None = None
    """Digest of the sources and tables that made run.json of the samples."""
    guest: GuestFacts | None = None
    count: CountFacts | None = None
    """What counted, where nothing was timed."""
    symbols: Sealed[str, Any] = Field(default={}, validate_default=True)
    """Which object each timed function came from: the native stage's own."""
    stubs: Sealed[str, Any] = Field(default={}, validate_default=True)
    """Stubs that were reached, with their counts, and declared data: the native stage's own."""
    warnings: Texts = ()
    """What may bias the run, each with its number and what to do about it."""
    noise: Noise | None = None
    """What a watch over the run saw; noise.jsonl has all of its looks."""

    def to_object(self) -> dict[str, Any]:
        """The object of receipt.json."""
        parts = self.model_dump(mode="json")
        return {"schema": SCHEMA, **{name: anonymous(part) for name, part in parts.items()}}

    def patches_line(self) -> str:
        """Every variant's series with the first digits of their ids."""
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
    """Our own version, and the commit where `checkout` is a git work tree of ours."""

    def git(*words: str) -> str:
        return run(Command(("git", *words), cwd=checkout, deadline_s=10)).strip()

    try:
        # A copy unpacked inside somebody else's work tree must not name their commit.
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
    """The same value with every home directory in its texts written as ~."""
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
