# SPDX-License-Identifier: GPL-2.0-only
"""The Debian package archive, asked for one package by its name.

Through apt, so that this machine's own sources, proxies and signatures hold. Nothing on the
system changes: if the package lists are missing or out of date, or of other suites than the
machine has, newer ones are fetched into a temporary directory of ours, which needs no root.
"""

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ream.command import Command, run
from ream.errors import CannotRunHere, ReamError
from ream.kernel.base import Base, newest_package

QUERY_S = 60.0
UPDATE_S = 180.0
DOWNLOAD_S = 900.0

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
"""On every Debian: the keys of all of its suites."""

_ORIGIN = "Debian"

_PATIENCE = ("-o", "Acquire::Retries=2", "-o", "Acquire::http::Timeout=30")


@dataclass(frozen=True)
class Offer:
    """A version of a package that can be had."""

    package: str
    version: str
    nr_bytes: int | None
    """Size of the package file; None if the archive does not say."""

    def __str__(self) -> str:
        return f"{self.package} {self.version}"


@dataclass(frozen=True)
class Lists:
    """Which package lists apt goes by: the system's (None), or our own in a directory."""

    directory: Path | None = None
    has_sources: bool = False
    """Whether they are of suites of their own, in the directory's file `sources.list`."""

    @property
    def options(self) -> tuple[str, ...]:
        if self.directory is None:
            return ()
        sources = (
            *("-o", f"Dir::Etc::SourceList={self.directory / 'sources.list'}"),
            *("-o", "Dir::Etc::SourceParts=/dev/null"),
        )
        return (
            *("-o", f"Dir::State::Lists={self.directory / 'lists'}"),
            *("-o", f"Dir::Cache={self.directory / 'cache'}"),
            *(sources if self.has_sources else ()),
        )


def download(
    base: Base, *, into: Path, have: str | None = None, step: Callable[[str], None]
) -> tuple[Offer, Path | None]:
    """Fetch the newest version of a base's package into a directory that the caller removes.

    have: what of it, as "PACKAGE VERSION", need not be fetched again; then the path is None.
    Raises CannotRunHere if there is no apt, no archive in reach, or no such package in it.
    """
    if shutil.which("apt-get") is None:
        raise CannotRunHere(
            f"no apt-get here to fetch {base} with (not a Debian system); "
            "give a kernel source with --tree PATH"
        )
    if base.package is not None and not base.suites:
        offer = newest(base.package, Lists())
        if offer is not None and have is None:
            try:
                return offer, _fetch(offer, Lists(), into, step)
            except ReamError:
                # What the system's lists promise may have left the archive since; newer ones tell.
                pass
    lists = _update(base, into, step)
    offer = _offer(base, lists)
    if offer is None:
        where = f"{', '.join(base.suites)} of " if base.suites else ""
        raise CannotRunHere(
            f"{where}the package archives of this machine do not offer {base}; "
            "give a kernel source with --tree PATH"
        )
    if str(offer) == have:
        return offer, None
    try:
        return offer, _fetch(offer, lists, into, step)
    except ReamError as cause:
        raise _unreachable(base, cause) from cause


def _offer(base: Base, lists: Lists) -> Offer | None:
    package = base.package
    if package is None:
        names = run(Command(("apt-cache", *lists.options, "pkgnames"), Path("/"), QUERY_S))
        package = newest_package(names.split())
    return None if package is None else newest(package, lists)


def newest(package: str, lists: Lists) -> Offer | None:
    """The version apt would install, or None if it knows of none. Needs no network."""
    policy = run(Command(("apt-cache", *lists.options, "policy", package), Path("/"), QUERY_S))
    version = candidate(policy)
    if version is None:
        return None
    show = ("apt-cache", *lists.options, "show", f"{package}={version}")
    return Offer(package, version, size(run(Command(show, Path("/"), QUERY_S))))


def candidate(policy: str) -> str | None:
    """The candidate version in what `apt-cache policy` prints about one package."""
    for line in policy.splitlines():
        name, _, value = line.strip().partition(": ")
        if name == "Candidate" and value != "(none)":
            return value
    return None


def size(show: str) -> int | None:
    """The package file's size in bytes in what `apt-cache show` prints."""
    for line in show.splitlines():
        name, _, value = line.partition(": ")
        if name == "Size" and value.isdecimal():
            return int(value)
    return None


def _update(base: Base, into: Path, step: Callable[[str], None]) -> Lists:
    of = f" of {', '.join(base.suites)}" if base.suites else ""
    step(f"fetching package lists{of}")
    lists = Lists(into / "apt", has_sources=bool(base.suites))
    for directory in ("lists/partial", "cache/archives/partial"):
        (into / "apt" / directory).mkdir(parents=True)
    if base.suites:
        (into / "apt" / "sources.list").write_text(_sources(base))
    strictly = ("-o", "APT::Update::Error-Mode=any")  # else no network at all is a success
    update = ("apt-get", "-qq", *_sandbox(), *_PATIENCE, *strictly, *lists.options, "update")
    try:
        run(Command(update, into, UPDATE_S))
    except ReamError as cause:
        # Another archive may be broken, or a hook meant for the system's lists: what counts is
        # whether ours name the package.
        if _offer(base, lists) is None:
            raise _unreachable(base, cause) from cause
    return lists


def _sources(base: Base) -> str:
    """A list of sources with the base's suites, from the mirror that this machine uses."""
    mirror = mirror_of(targets())
    if mirror is None or not KEYRING.is_file():
        raise CannotRunHere(
            f"{base} is in {', '.join(base.suites)} of Debian's archive, and this machine has no"
            f" {'keys of it' if mirror else 'mirror of it among its sources'}; give a kernel source"
            " with --tree PATH"
        )
    return "".join(f"deb [signed-by={KEYRING}] {mirror} {suite} main\n" for suite in base.suites)


def targets() -> str:
    """Apt's own archives, a line each: address, suite and origin."""
    words = ("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(ORIGIN)")
    return run(Command((*words, "Created-By: Packages"), Path("/"), QUERY_S))


def mirror_of(said: str) -> str | None:
    """The address of Debian's archive among those that `targets` has.

    One of a plain release: updates for security are elsewhere, and have no other suites. The
    origin is known only of what was fetched before.
    """
    for uri, release, origin in re.findall(r"(?m)^(\S+) (\S+) (\S*)$", said):
        if "-" not in release and origin in ("", _ORIGIN) and uri.rstrip("/").endswith("/debian"):
            return str(uri)
    return None


def _fetch(offer: Offer, lists: Lists, into: Path, step: Callable[[str], None]) -> Path:
    how_much = f" ({offer.nr_bytes / 1e6:.0f} MB)" if offer.nr_bytes else ""
    step(f"downloading {offer}{how_much}")
    wanted = f"{offer.package}={offer.version}"
    apt = ("apt-get", "-qq", *_sandbox(), *_PATIENCE, *lists.options, "download", wanted)
    run(Command(apt, into, DOWNLOAD_S))
    (package,) = into.glob(f"{offer.package}_*.deb")
    return package


def _sandbox() -> tuple[str, ...]:
    # As root apt would download as user _apt, who may not write to a user's cache.
    return ("-o", "APT::Sandbox::User=root")


def _unreachable(base: Base, cause: ReamError) -> CannotRunHere:
    found = re.search(r"(?m)(?:^|exit \d+: )((?:E|Err): .*)$", str(cause))
    said = found[1] if found else str(cause).splitlines()[-1]
    return CannotRunHere(
        f"cannot fetch {base}: {said}; is a package archive reachable? "
        "If not, give a kernel source with --tree PATH"
    )
