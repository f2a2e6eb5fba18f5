# SPDX-License-Identifier: GPL-2.0-only
"""Fetches one package by name from the Debian package archive.

It uses apt, so that this machine's own sources, proxies and signatures apply. The system is not
changed: if package lists are missing or out of date, or if other suites are needed, lists are
fetched into a temporary directory, which needs no root.
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
"""The keys of all Debian suites, installed on every Debian system."""

_ORIGIN = "Debian"

_PATIENCE = ("-o", "Acquire::Retries=2", "-o", "Acquire::http::Timeout=30")


@dataclass(frozen=True)
class Offer:
    """An available version of a package."""

    package: str
    version: str
    nr_bytes: int | None
    """Size of the package file; None if the archive does not give it."""

    def __str__(self) -> str:
        return f"{self.package} {self.version}"


@dataclass(frozen=True)
class Lists:
    """Package lists for apt: the system's (None), or those in a directory of ream's."""

    directory: Path | None = None
    has_sources: bool = False
    """Whether the directory has its own suites, in its file `sources.list`."""

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

    have: a version, as "PACKAGE VERSION", that is not fetched again; the path is then None.
    Raises CannotRunHere without apt, a reachable archive, or such a package in it.
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
                # The archive may no longer have what the system's lists name: fetch newer lists.
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
    """Return the version that apt would install; None if it knows none. Needs no network."""
    policy = run(Command(("apt-cache", *lists.options, "policy", package), Path("/"), QUERY_S))
    version = candidate(policy)
    if version is None:
        return None
    show = ("apt-cache", *lists.options, "show", f"{package}={version}")
    return Offer(package, version, size(run(Command(show, Path("/"), QUERY_S))))


def candidate(policy: str) -> str | None:
    """Return the candidate version in the output of `apt-cache policy` for one package."""
    for line in policy.splitlines():
        name, _, value = line.strip().partition(": ")
        if name == "Candidate" and value != "(none)":
            return value
    return None


def size(show: str) -> int | None:
    """Return the size of the package file in bytes, from the output of `apt-cache show`."""
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
    strictly = ("-o", "APT::Update::Error-Mode=any")  # otherwise it succeeds without a network
    update = ("apt-get", "-qq", *_sandbox(), *_PATIENCE, *strictly, *lists.options, "update")
    try:
        run(Command(update, into, UPDATE_S))
    except ReamError as cause:
        # Another archive may be broken, or a hook for the system's lists may fail. It only matters
        # whether our lists name the package.
        if _offer(base, lists) is None:
            raise _unreachable(base, cause) from cause
    return lists


def _sources(base: Base) -> str:
    """Return a list of sources with the base's suites, from the mirror that this machine uses."""
    mirror = mirror_of(targets())
    if mirror is None or not KEYRING.is_file():
        raise CannotRunHere(
            f"{base} is in {', '.join(base.suites)} of Debian's archive, and this machine has no"
            f" {'keys of it' if mirror else 'mirror of it among its sources'}; give a kernel source"
            " with --tree PATH"
        )
    return "".join(f"deb [signed-by={KEYRING}] {mirror} {suite} main\n" for suite in base.suites)


def targets() -> str:
    """Return the archives that apt uses, in lines of address, suite and origin."""
    words = ("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(ORIGIN)")
    return run(Command((*words, "Created-By: Packages"), Path("/"), QUERY_S))


def mirror_of(said: str) -> str | None:
    """Return the address of Debian's archive from the output of `targets`.

    It is that of a plain release, since the security archive has no other suites. The origin is
    known only for archives that were fetched before.
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
    # Run by root, apt would download as user _apt, which may not write to a user's cache.
    return ("-o", "APT::Sandbox::User=root")


def _unreachable(base: Base, cause: ReamError) -> CannotRunHere:
    found = re.search(r"(?m)(?:^|exit \d+: )((?:E|Err): .*)$", str(cause))
    said = found[1] if found else str(cause).splitlines()[-1]
    return CannotRunHere(
        f"cannot fetch {base}: {said}; is a package archive reachable? "
        "If not, give a kernel source with --tree PATH"
    )
