# SPDX-License-Identifier: GPL-2.0-only
"""Turns commits of a git tree or of a bundle into series, by git format-patch."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ream.command import Command, finished, require, run
from ream.counted import counted
from ream.errors import BadUsage, ReamError

GIT_S = 300.0
"""Time limit of one git command; the bundle of a whole history is large."""

MOST_COMMITS = 1000
"""The most commits of a series. A bundle with more has too much history."""

LARGEST_HEADER = 1 << 20

_TRUNKS = ("origin/HEAD", "origin/master", "origin/main", "master", "main")
"""Refs from which a branch without an upstream may start; it may also start from a release."""

_FIRST_LINE = re.compile(rb"# v[23] git bundle\n")

_SHORT = 12


@dataclass(frozen=True)
class _Header:
    """The header of a bundle."""

    wanted: Mapping[str, str]
    """Prerequisite commits, which are not in the bundle, with their subjects."""
    tips: Mapping[str, str]
    """Branches and tags by commit; only the first if a commit has several names."""


@dataclass(frozen=True)
class Line:
    """Commit ids in a git tree: the commit before a series, and its last commit."""

    base: str
    tip: str


def line_of(words: str, repository: Path) -> Line | None:
    """Return the commits that words name in a git tree; None if they name none.

    A..B and A...B: those of B that A lacks. A branch or HEAD: those since its upstream or, without
    one, since the nearest of the trunk and a release. Anything else is one commit.
    Raises BadUsage if the start of a branch is not known.
    """
    start, dots, end = words.partition("..")
    tip = _commit(repository, end.removeprefix(".") or "HEAD" if dots else words)
    if tip is None or (dots and _commit(repository, start or "HEAD") is None):
        return None
    first = (start or "HEAD") if dots else _start_of(words, tip, repository)
    base = first and _asked(repository, "merge-base", first, tip)
    if not base:
        raise BadUsage(f"{words}: after which commit does it begin? BASE..{words} says it")
    return Line(base, tip)


def format_line(its: Line, words: str, room: Path, repository: Path) -> list[Path]:
    """Write commits of a git tree as files of git format-patch, in order; see `unbundle`."""
    git = _Git(room / "git", _objects(repository))
    return _formatted(git, room, words, (its.tip, "--not", its.base))


def is_bundle(file: Path) -> bool:
    """Whether a file is a git bundle; raises OSError if it cannot be read."""
    with file.open("rb") as opened:
        return _FIRST_LINE.match(opened.read(20)) is not None


def unbundle(bundle: Path, room: Path, repository: Path | None) -> list[Path]:
    """Write the bundle's commits as files of git format-patch, in order.

    room: an empty folder for the files and a temporary repository. repository: a git tree that may
    have the bundle's prerequisites. A bundle without prerequisites begins with a root commit, which
    is no patch; the series is what follows it.
    Raises BadUsage if the prerequisites are missing, or if the history is not linear.
    """
    require("git")
    header = _header(bundle)
    if len(header.tips) != 1:
        names = ", ".join(header.tips.values()) or "none"
        raise BadUsage(f"{bundle}: a git bundle of one branch is a series; it has {names}")
    ((tip, branch),) = header.tips.items()
    try:
        git = _Git(room / "git", None if repository is None else _objects(repository))
        lacking = [commit for commit in header.wanted if not git.has(commit)]
        if lacking:
            raise BadUsage(_lacking(bundle, lacking[0], branch, header, repository))
        for number, commit in enumerate(header.wanted):
            git("update-ref", f"refs/wanted/{number}", commit)
        git("fetch", "--quiet", "--no-tags", str(bundle.resolve()), f"+{branch}:refs/heads/series")
        bases = [*header.wanted] or git("rev-list", "--max-parents=0", tip).split()
        return _formatted(git, room, str(bundle), (tip, "--not", *bases))
    except BadUsage:
        raise
    except ReamError as cause:
        said = re.findall(r"(?m)(?:fatal|error): (.*)$", str(cause)) or [str(cause)]
        raise BadUsage(f"{bundle}: git cannot read this bundle: {said[0]}") from cause


class _Git:
    """A temporary repository that borrows another's objects and ignores all configuration."""

    def __init__(self, place: Path, objects: str | None) -> None:
        place.mkdir()
        self._place = place
        self._env = {"GIT_DIR": str(place), "GIT_CONFIG_GLOBAL": "/dev/null"}
        self._env |= {"GIT_CONFIG_NOSYSTEM": "1"}
        self._env |= {} if objects is None else {"GIT_ALTERNATE_OBJECT_DIRECTORIES": objects}
        self("init", "--quiet", "--bare")

    def __call__(self, *words: str) -> str:
        return run(Command(("git", *words), self._place, GIT_S, self._env))

    def has(self, commit: str) -> bool:
        try:
            self("cat-file", "-e", f"{commit}^{{commit}}")
        except ReamError:
            return False
        return True


def _header(bundle: Path) -> _Header:
    with bundle.open("rb") as opened:
        head = opened.read(LARGEST_HEADER).partition(b"\n\n")[0]
    wanted: dict[str, str] = {}
    tips: dict[str, str] = {}
    for line in head.decode(errors="replace").splitlines()[1:]:
        if match := re.match(r"(-?)([0-9a-f]{40,64})(?: (.*))?$", line):
            (wanted if match[1] else tips).setdefault(match[2], match[3] or "")
    return _Header(wanted, tips)


def _objects(repository: Path) -> str:
    words = ("git", "rev-parse", "--path-format=absolute", "--git-path", "objects")
    return run(Command(words, repository, GIT_S)).strip()


def _lacking(
    bundle: Path, commit: str, branch: str, header: _Header, repository: Path | None
) -> str:
    subject = header.wanted[commit]
    named = f"{commit[:_SHORT]}{f' ({subject})' if subject else ''}"
    where = "" if repository is None else f", which {repository} has not"
    name = branch.rpartition("/")[2]
    return (
        f"{bundle}: a git bundle that continues from {named}{where}; give a git tree that has it"
        f" with --tree DIR, or the patches: `git format-patch --stdout {commit[:_SHORT]}..{name} >"
        f" {name}.mbox`"
    )


def _formatted(git: _Git, room: Path, named: str, commits: Sequence[str]) -> list[Path]:
    number = int(git("rev-list", "--count", *commits))
    if not 1 <= number <= MOST_COMMITS:
        raise BadUsage(f"{named}: {counted(number, 'commit')} inside; a series has 1 to 1,000")
    if merge := git("rev-list", "--merges", "--max-count=1", *commits).strip():
        raise BadUsage(f"{named}: {merge[:_SHORT]} is a merge; a series is a straight line")
    patches = room / "patches"
    git("format-patch", "--quiet", "--output-directory", str(patches), *commits)
    return sorted(patches.iterdir())


def _start_of(words: str, tip: str, repository: Path) -> str | None:
    """Return the start of a branch, or the parent of a commit; None if it is not known."""
    name = _asked(repository, "rev-parse", "--symbolic-full-name", words) or ""
    if words not in ("HEAD", "@") and not name.startswith(("refs/heads/", "refs/remotes/")):
        return f"{tip}^"
    upstream = _asked(repository, "rev-parse", "--abbrev-ref", f"{words}@{{upstream}}") or ""
    if upstream and upstream.partition("/")[2] != name.removeprefix("refs/heads/"):
        return upstream  # otherwise the branch is only pushed there
    release = _asked(repository, "describe", "--tags", "--abbrev=0", "--match=v[0-9]*.[0-9]*", tip)
    places = [_asked(repository, "merge-base", one, tip) for one in (*_TRUNKS, release or tip)]
    known = [place for place in places if place and place != tip]
    counts = {one: _asked(repository, "rev-list", "--count", f"{one}..{tip}") for one in known}
    return min(known, key=lambda one: int(counts[one] or 0), default=None)


def _commit(repository: Path, name: str) -> str | None:
    return _asked(repository, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")


def _asked(repository: Path, *words: str) -> str | None:
    """Return the output of git in a git tree; None if it fails."""
    require("git")
    code, said, _ = finished(Command(("git", *words), repository, GIT_S))
    return None if code else said.strip()
