# SPDX-License-Identifier: GPL-2.0-only
"""Finds the commit that changed the time of a row: `git bisect` with measured verdicts.

Each step is one run of up to three kernels in one program: the good commit, the bad commit and the
commit in question. The latter is bad if its whole interval lies on the bad commit's side of the
middle between the two, and good if it lies on the other side. Otherwise it is launched more often,
and then skipped.

If one CPU does the work, ratios are of its CPU time, because time that other programs take would
only widen the intervals. A run that counts is exact: ratios are then of instructions or, if both
ends execute equally many, of the first quantity in which they differ.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ream.command import Command, finished, run
from ream.count.counter import QUANTITIES
from ream.counted import counted
from ream.errors import BadUsage, Inconclusive, ReamError
from ream.experiment import AGAIN, BEFORE, IMPLIED
from ream.kernel.cache import scratch
from ream.kernel.series import Patch, Series
from ream.kernel.source import Commit
from ream.progress import Reporter
from ream.record.record import SCHEMA
from ream.report.contract import Ratio, Result, RowResult
from ream.session.request import Request
from ream.session.run import Outcome, run_session
from ream.variants import Variant

GIT_S = 600.0
SHORT = 12
FIRST_LAUNCHES = 4
"""Launches of a commit, unless another number is asked for; they decide most commits."""
MORE_LAUNCHES = (1, 2, 4)
"""Factors of the launches in successive runs, while nothing is decided."""
LARGEST_DIFF = 8 << 20
"""Largest diff between two commits, in bytes; beyond it a commit is built from its own tree."""

GOOD, BAD, SKIP = "good", "bad", "skip"
TIME, CPU_TIME = "time", "CPU time"
"""Quantities of ratios, unless executed instructions or memory operations are counted."""

_FOUND = re.compile(r"^([0-9a-f]{40,64}) is the first '?bad'? commit", re.MULTILINE)
_ANY_OF = re.compile(r"^[0-9a-f]{40,64}$", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """One commit that was tried."""

    commit: str
    subject: str
    verdict: str
    ratio: Ratio | None
    """The ratio to the good commit; None if it was not measured."""
    said: str
    records: tuple[Path, ...] = ()

    def line(self) -> str:
        return f"{self.verdict:<5} {self.commit[:SHORT]} {self.subject}: {self.said}"


@dataclass(frozen=True)
class Found:
    """The result of a bisection."""

    row: str
    whole: Ratio
    """The ratio of the bad commit to the good one."""
    steps: tuple[Step, ...]
    commits: tuple[str, ...]
    """The first bad commit, or all candidates if skipped commits leave several."""
    subject: str
    own: Ratio | None
    """The ratio of the first bad commit to the one before it."""
    records: tuple[Path, ...] = field(default=())
    quantity: str = TIME

    def to_object(self) -> dict[str, Any]:
        """Return the object of --json; docs/commands.md documents its fields."""
        return {
            "schema": SCHEMA,
            "row": self.row,
            "quantity": self.quantity,
            "commits": list(self.commits),
            "subject": self.subject,
            "ratio": _object(self.own),
            "whole": _object(self.whole),
            "steps": [
                {
                    **{
                        name: getattr(one, name)
                        for name in ("commit", "subject", "verdict", "said")
                    },
                    "ratio": _object(one.ratio),
                    "records": [path.name for path in one.records],
                }
                for one in self.steps
            ],
            "records": [path.name for path in self.records],
        }


def _object(ratio: Ratio | None) -> dict[str, Any] | None:
    return None if ratio is None else ratio.model_dump(include={"ratio", "low", "high"})


def words(ratio: Ratio) -> str:
    """Return a ratio with its interval in words."""
    if ratio.low is None or ratio.high is None:
        return f"{ratio.ratio:.3f}"
    return f"{ratio.ratio:.3f} [{ratio.low:.3f} .. {ratio.high:.3f}]"


def verdict_of(its: Ratio, bad: Ratio) -> str | None:
    """Return GOOD or BAD by the side of the middle on which a commit's interval lies.

    The middle is that between the two ends. None if the interval contains it, or if this run does
    not tell the ends apart.
    """
    middle = math.log(bad.ratio) / 2
    return _side(its, middle) if _side(bad, middle) == BAD else None


def _side(its: Ratio, middle: float) -> str | None:
    if its.low is None or its.high is None:
        return None
    low, high = sorted(math.copysign(1.0, middle) * math.log(end) for end in (its.low, its.high))
    if low > abs(middle):
        return BAD
    return GOOD if high < abs(middle) else None


class _Git:
    """A clone that borrows a repository's objects and leaves the repository's checkout alone."""

    def __init__(self, repository: Path, room: Path) -> None:
        self._room = room / "git"
        words_ = ("git", "clone", "--quiet", "--shared", "--no-checkout", str(repository.resolve()))
        run(Command((*words_, str(self._room)), room, GIT_S))

    def said(self, *words_: str) -> str:
        return run(Command(("git", *words_), self._room, GIT_S)).strip()

    def begin(self, good: str, bad: str) -> str:
        """Start between two commits. HEAD is set to one, as the repository's may be unborn."""
        self.said("update-ref", "--no-deref", "HEAD", bad)
        return self.bisect("start", "--no-checkout", bad, good)

    def bisect(self, *words_: str) -> str:
        """Return the output of `git bisect`, which fails if only skipped commits are left."""
        asked = Command(("git", "bisect", *words_), self._room, GIT_S)
        code, said, error = finished(asked)
        if code and not _ended(said):
            raise ReamError(f"{asked}: exit {code}: {error.strip() or said.strip()}")
        return said

    def commit(self, revision: str) -> str | None:
        """Return a revision's full commit id, None if there is none.

        Branches of the repository are remote branches here, so "origin/" is tried as well.
        """
        for name in (revision, f"origin/{revision}"):
            asked = ("git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
            code, said, _ = finished(Command(asked, self._room, GIT_S))
            if not code:
                return said.strip()
        return None

    def subject(self, commit: str) -> str:
        return self.said("log", "-1", "--format=%s", commit)


def bisect(request: Request, good: str, bad: str, reporter: Reporter) -> Found:
    """Find the first bad commit.

    request: a run of one row of the native stage; its tree is the repository. good, bad: revisions.
    Raises BadUsage unless good is an ancestor of bad, Inconclusive if the row does not tell them
    apart, and what `run_session` raises for the two.
    """
    (row,) = request.experiment.rows
    assert isinstance(request.tree, Path)
    name = f"bisect-{request.seed:x}"
    with scratch(request.cache / "run" / name, reporter.step) as room:
        git = _Git(request.tree, room)
        first, last = (_known(git, request.tree, one) for one in (good, bad))
        history = git.said("rev-list", f"{first}..{last}").split()
        if not history or git.said("merge-base", first, last) != first:
            raise BadUsage(f"{request.tree}: {good} does not come before {bad}")
        hunt, whole = _Hunt(request, git, first, last, reporter).told_apart()
        quantity = hunt.quantity
        reporter.step(
            f"{bad} against {good}: {words(whole)} of {quantity};"
            f" {counted(len(history), 'commit')},"
            f" about {counted(math.ceil(math.log2(len(history))), 'step')}"
        )
        steps: list[Step] = []
        said = git.begin(first, last)
        while not (commits := _ended(said)):
            step = hunt.step(git.said("rev-parse", "BISECT_HEAD"), whole)
            reporter.step(step.line())
            steps.append(step)
            said = git.bisect(step.verdict)
        subject = git.subject(commits[0])
        found = Found(row.name, whole, tuple(steps), commits, subject, None, quantity=quantity)
        if len(commits) > 1:
            return found
        own, record = hunt.against_parent(commits[0])
        return replace(found, own=own, records=(record,))


def _known(git: _Git, repository: Path, revision: str) -> str:
    if (commit := git.commit(revision)) is None:
        raise BadUsage(f"{repository}: git has no commit {revision} there")
    return commit


def _ended(said: str) -> tuple[str, ...]:
    """Return the first bad commit or all candidates; empty if there are more commits to try."""
    if found := _FOUND.search(said):
        return (found[1],)
    return tuple(_ANY_OF.findall(said)) if "only 'skip'ped commits left" in said else ()


@dataclass(frozen=True)
class _Hunt:
    request: Request
    git: _Git
    good: str
    bad: str
    reporter: Reporter
    quantity: str = TIME
    """The quantity of ratios."""

    def told_apart(self) -> tuple["_Hunt", Ratio]:
        """Return the hunt with the quantity that tells the ends apart, and the bad end's ratio.

        Raises Inconclusive if the ends cannot be told apart.
        """
        said = ""
        for outcome in self._runs(self.good, (self.bad,)):
            quantity = quantity_of(_row(outcome), self.bad[:SHORT])
            its, floor = _ratio(outcome, self.bad[:SHORT], quantity), _floor(outcome, quantity)
            said = f"{_row(outcome).row}: {self.bad[:SHORT]} against {self.good[:SHORT]} is"
            said = f"{said} {words(its)}"
            if its.low is not None and its.high is not None and floor is not None:
                slack = max(abs(math.log(end)) for end in (floor.low or 1, floor.high or 1))
                if math.log(its.low) > slack or math.log(its.high) < -slack:
                    return replace(self, quantity=quantity), its
        raise Inconclusive(
            f"{said}, which may be none: there is nothing to search for; take more launches, or"
            " another row"
        )

    def step(self, commit: str, whole: Ratio) -> Step:
        """Measure one commit."""
        subject, records, said = self.git.subject(commit), [], ""
        try:
            for outcome in self._runs(self.good, (self.bad, commit)):
                records.append(outcome.path)
                its, bad = (
                    _ratio(outcome, one[:SHORT], self.quantity) for one in (commit, self.bad)
                )
                said = f"undecided: {words(its)}, between 1 and {whole.ratio:.3f}"
                if (verdict := verdict_of(its, bad)) is not None:
                    return Step(commit, subject, verdict, its, words(its), tuple(records))
        except ReamError as cause:
            said = str(cause).splitlines()[0]
        return Step(commit, subject, SKIP, None, said, tuple(records))

    def against_parent(self, commit: str) -> tuple[Ratio, Path]:
        """Return the first bad commit's ratio to its parent, and the record of the last run."""
        parent = self.git.said("rev-parse", f"{commit}^")
        tried: list[tuple[Ratio, Path]] = []
        for outcome in self._runs(parent, (commit,)):
            its = _ratio(outcome, commit[:SHORT], self.quantity)
            tried.append((its, outcome.path))
            if its.low is None or its.high is None or not its.low <= 1 <= its.high:
                break
        return tried[-1]

    def _runs(self, first: str, others: Sequence[str]) -> Iterator[Outcome]:
        """Yield runs of the same kernels with more launches each time.

        first: the commit that the others are compared with. It need not have its own tree either.
        """
        its = self._variant(self.good, first)
        home, series = (self.good, its.series) if its.tree is None else (first, ())
        variants = [Variant(name, series) for name in IMPLIED]
        variants += [self._variant(home, one) for one in others]
        experiment = self.request.experiment
        assert isinstance(self.request.tree, Path)
        for times in MORE_LAUNCHES if self.request.count is None else (1,):
            yield run_session(
                replace(
                    self.request,
                    experiment=experiment.resized(launches=experiment.launches * times),
                    variants=tuple(variants),
                    tree=Commit(self.request.tree, home),
                    asked=True,
                ),
                self.reporter,
            )

    def _variant(self, first: str, commit: str) -> Variant:
        """Return a commit as a patch on another, or with its own tree if the diff is too large."""
        words_ = ("diff", "--no-color", "--no-ext-diff", "--no-renames", "--full-index", "--binary")
        diff = self.git.said(*words_, first, commit)
        name = commit[:SHORT]
        if len(diff) > LARGEST_DIFF:
            assert isinstance(self.request.tree, Path)
            return Variant(name, (), tree=Commit(self.request.tree, commit))
        if not diff:
            return Variant(name, ())
        patch = Patch(f"{name}.diff", self.git.subject(commit), f"{diff}\n".encode())
        return Variant(name, (Series(name, (patch,)),))


def _row(outcome: Outcome) -> RowResult:
    return outcome.summary.rows[0]


def quantity_of(row: RowResult, bad: str) -> str:
    """Return the quantity by which commits are compared; bad: the name of the bad end's variant."""
    if row.counted is not None:
        ours, theirs = (row.counted.variants[name] for name in (bad, BEFORE))
        apart = (name for name in QUANTITIES if ours.get(name, 0) != theirs.get(name, 0))
        return next(apart, QUANTITIES[0])
    alone = all(one.threads == 1 and one.cpu_over_before for one in _others(row))
    return CPU_TIME if alone else TIME


def _others(row: RowResult) -> Iterator[Result]:
    return (one for name, one in row.variants.items() if name != BEFORE)


def _counted(row: RowResult, name: str, quantity: str) -> Ratio:
    """Return the ratio of two counts, without an interval; if one is 0, 1 is added to both."""
    assert row.counted is not None
    if not row.counted.repeats:
        raise Inconclusive(f"{row.row}: samples of one kernel did not count the same")
    its, before = (row.counted.variants[one].get(quantity, 0) for one in (name, BEFORE))
    ratio = its / before if its and before else (its + 1) / (before + 1)
    return Ratio(ratio=ratio, low=ratio, high=ratio)


def _ratio(outcome: Outcome, name: str, quantity: str) -> Ratio:
    row = _row(outcome)
    if row.counted is not None:
        return _counted(row, name, quantity)
    its = row.variants[name]
    if quantity == CPU_TIME and its.cpu_over_before is not None:
        return its.cpu_over_before
    if its.ratio is None:
        raise Inconclusive(f"{row.row}: not measured")
    return Ratio(ratio=its.ratio, low=its.low, high=its.high)


def _floor(outcome: Outcome, quantity: str) -> Ratio | None:
    """Return the ratio between two copies of the good commit."""
    if quantity == TIME:
        return _row(outcome).floor
    return _ratio(outcome, BEFORE + AGAIN, quantity)


def report(found: Found, say: Callable[[str], None]) -> None:
    """Print what was found in a few lines."""
    for step in found.steps:
        say(step.line())
    if len(found.commits) > 1:
        say(
            f"{found.row}: the first bad commit is one of {len(found.commits)}, which were skipped:"
        )
        for commit in found.commits:
            say(f"  {commit[:SHORT]}")
        return
    say(f"{found.row}: the first bad commit is {found.commits[0][:SHORT]} {found.subject}")
    if found.own is not None:
        say(f"  against the one before it: {words(found.own)}")
    say(f"  of all that bad is against good: {words(found.whole)}")
    if found.quantity == CPU_TIME:
        say("  ratios are of CPU time: one CPU does the work")
    elif found.quantity != TIME:
        say(f"  ratios are of counts, which are exact: {found.quantity}")
    decided = [step for step in found.steps if step.verdict != SKIP]
    how = "a whole 95 % interval" if found.quantity in (TIME, CPU_TIME) else "its count"
    say(
        f"  each of {counted(len(decided), 'step')} decided by {how} on one side of the middle;"
        f" {counted(len(found.steps) - len(decided), 'skipped', 'skipped')}"
    )
