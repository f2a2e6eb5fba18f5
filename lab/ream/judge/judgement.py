# SPDX-License-Identifier: GPL-2.0-only
"""What is said of a series in the end: one outcome for each row, one for all, and an exit status.

No outcome is stronger than its evidence. Times are decided together over all rows of a run, with
the noise of two copies of the same kernel. Counts are exact, and say nothing of time.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Self, get_args

from pydantic import TypeAdapter

from ream.counted import counted
from ream.errors import CannotRunHere, ClaimFails, Inconclusive, VerificationFailed
from ream.judge.reach import Reach, WholeReach, shortened
from ream.record.record import SCHEMA
from ream.report.contract import RowResult
from ream.report.counts_table import QUANTITIES

Outcome = Literal["slower", "more", "mixed", "undecided", "equal", "same", "fewer", "faster"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
"""By time: slower, equal and faster; equal only where its bound has no room for what counts show.
By counts alone: more, mixed (more of one quantity, and fewer of another), same (no quantity differs
by more than GROWTH) and fewer. A time whose interval excludes 1 against what counts say makes the
row undecided. The worst come first."""

LOSSES: tuple[Outcome, ...] = ("slower", "more")
GAINS: tuple[Outcome, ...] = ("faster", "fewer")

BY_TIME: Mapping[str | None, Outcome] = {
    "slower": "slower", "equal": "equal", "faster": "faster",
}  # fmt: skip
"""What is decided by a time's effect; of any other, counts decide."""

GROWTH = 0.001
"""Share by which a count may grow and is no cost yet, as in `ream check --counts`."""

LITTLE = 0.01
"""Share up to which a loss is called little: about what the place of code in memory is worth."""

TIME, COUNTS = "time", "counts"
"""What decides a row, where it is not one quantity: its time, or that all counts are the same."""

WEIGHED = ("instructions", "locked")
"""Quantities that are printed, and that tell how much a row is affected."""

COSTS = (*WEIGHED, "loads", "stores", "fences", "lines_read", "lines_written")
"""Quantities of which more is a cost. Of others, such as prefetches, more may be a gain."""

ORDERED = ("locked", "streaming", "fences")
"""Operations that take far longer than others: a count with more of them says nothing of time."""


@dataclass(frozen=True)
class CountedChange:
    """What a row executes for each page or entry with and without the series."""

    per: str
    before: Mapping[str, float]
    after: Mapping[str, float]
    repeats: bool
    """Whether every sample of one kernel counted the same."""

    def share(self, quantity: str) -> float:
        """By which share of what it was a quantity has grown; infinite if there was none of it."""
        old, new = self.before.get(quantity, 0.0), self.after.get(quantity, 0.0)
        if old == new:
            return 0.0
        return new / old - 1 if old else float("inf")

    @property
    def grown(self) -> bool:
        """Whether one of the costs has grown by more than GROWTH."""
        return any(self.share(name) > GROWTH for name in COSTS)

    @property
    def shrunk(self) -> bool:
        """Whether one of the costs has shrunk by more than GROWTH."""
        return any(self.share(name) < -GROWTH for name in COSTS)

    @property
    def margin(self) -> float:
        """The largest share by which any quantity has changed."""
        return max(abs(self.share(name)) for name in QUANTITIES)

    def most(self, sign: int) -> tuple[str, float]:
        """The cost that has grown most (sign 1) or shrunk most (-1), and by which share."""
        return max(((n, self.share(n)) for n in COSTS), key=lambda its: sign * its[1])

    def decider(self, sign: int) -> str:
        """The quantity by which a row executes more (sign 1) or fewer (-1).

        One of WEIGHED if its change is of the same order as that of the cost that changed most:
        up to GROWTH, up to LITTLE, or more.
        """
        most, share = self.most(sign)
        weighed = max(WEIGHED, key=lambda name: sign * self.share(name))
        own = sign * self.share(weighed)
        return weighed if own > 0 and _order(own) == _order(sign * share) else most

    def suffices(self, limit: float) -> bool:
        """Whether these counts alone show that the row has lost nothing.

        That is so if no quantity has grown by more than the limit, a share, and no operation of
        ORDERED was added.
        """
        grows = any(self.share(name) > limit for name in QUANTITIES)
        return self.repeats and not grows and all(self.share(name) <= 0 for name in ORDERED)

    @property
    def less(self) -> bool:
        """Whether costs have shrunk, however little, and none has grown."""
        shares = [self.share(name) for name in COSTS]
        return min(shares) < 0 and max(shares) <= 0


def _order(share: float) -> int:
    """The order of magnitude of a change: 0 up to GROWTH, 1 up to LITTLE, 2 beyond."""
    return (share > GROWTH) + (share > LITTLE)


@dataclass(frozen=True)
class TimedChange:
    """The time of a row with the series over that without it."""

    ratio: float
    low: float | None
    high: float | None
    effect: str | None
    """As in the record; None if it could not be decided."""
    within: float | None
    """For what is no effect, the bound on one: 1.02 is within 2 %."""
    smallest_effect: float | None
    """The smallest ratio above 1 that would have been found nine times of ten."""
    control: bool | None = None
    """Whether the positive control was found in this row; None if there was none."""
    before_ns: float | None = None
    """The time without the series for each of `per`, which is a page, an entry or a call."""
    per: str = "call"


@dataclass(frozen=True)
class PatchStep:
    """What one patch of the series changes of what a row executes."""

    number: int
    subject: str
    changes: Mapping[str, float]
    """By quantity, for each page or entry; empty if all counts are equal."""


@dataclass(frozen=True)
class Operation:
    """One row that the series reaches, and all that was found about it."""

    experiment: str
    row: str
    title: str
    counted: CountedChange | None = None
    timed: TimedChange | None = None
    functions: tuple[tuple[str, Mapping[str, float]], ...] = ()
    """Functions that execute more or less than before, the largest difference first."""
    steps: tuple[PatchStep, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """What its time says or, where that decides nothing, what its counts say.

        A row is undecided if its counts say one thing and the interval of its time the opposite, or
        if its counts are the same and the whole interval of its time is a loss.
        """
        effect = None if self.timed is None else self.timed.effect
        if (decided := BY_TIME.get(effect)) is not None and not self.hides_counts:
            return decided
        found = self._by_counts
        if self.timed is None or self.timed.low is None or self.timed.high is None:
            return found
        against = self.timed.high < 1 if found in LOSSES else self.timed.low > 1
        return "undecided" if against and found in (*GAINS, *LOSSES, "same") else found

    @property
    def _by_counts(self) -> Outcome:
        if self.counted is None or not self.counted.repeats:
            return "undecided"
        if self.counted.grown:
            return "mixed" if self.counted.shrunk else "more"
        if self.counted.shrunk or self.counted.less:
            return "fewer"
        return "same" if self.counted.margin <= GROWTH else "undecided"

    @property
    def decided_by(self) -> str | None:
        """What decided its outcome: TIME, COUNTS or the name of a quantity; None if undecided."""
        outcome = self.outcome
        if outcome in BY_TIME.values():
            return TIME
        if outcome == "undecided" or self.counted is None:
            return None
        return COUNTS if outcome == "same" else self.counted.decider(-1 if outcome in GAINS else 1)

    def is_shown(self, limit: float) -> bool:
        """Whether the evidence suffices to say that it has lost nothing beyond a limit, a share.

        Either its counts alone suffice, or its time found an effect or the positive control.
        """
        if self.counted is not None and self.counted.suffices(limit):
            return True
        its = self.timed
        return its is not None and (its.effect in ("slower", "faster") or its.control is True)

    @property
    def hides_counts(self) -> bool:
        """Whether its time is called equal within a bound that has room for what counts show.

        More locked operations than none have no share, and so no bound is close enough for them.
        """
        its, change = self.timed, self.counted
        if its is None or its.effect != "equal" or change is None or not change.repeats:
            return False
        grown = [share for name in WEIGHED if (share := change.share(name)) > GROWTH]
        room = float("inf") if its.within is None else its.within - 1
        return any(share < room or share == float("inf") for share in grown)

    @property
    def loss(self) -> float:
        """How large its regression is; 0 if it has none. By counts, the cost that grew most."""
        if self.outcome not in LOSSES:
            return 0.0
        if self.outcome == "slower" or self.counted is None:
            return self.size
        return self.counted.most(1)[1]

    @property
    def size(self) -> float:
        """How large the change is, to put the largest first; at least 0."""
        if self.timed is not None and self.timed.effect in ("slower", "faster"):
            return abs(self.timed.ratio - 1)
        return affected(self.counted)


def affected(change: CountedChange | None) -> float:
    """How much a row is affected: by the share of its instructions, or of its locked operations.

    Where neither differs, by that of the cost that differs most.
    """
    if change is None:
        return float("inf")
    weighed = max(abs(change.share(name)) for name in WEIGHED)
    return weighed or max(abs(change.share(name)) for name in COSTS)


@dataclass(frozen=True)
class Finding:
    """One thing that was found about a series, for programs that show it beside the code.

    file, line: the changed line of the kernel source that is nearest, from 1. What is not known is
    None.
    """

    rule: str
    """What was broken, the same for each series that breaks it; docs/format.md has the kinds."""
    message: str
    step: str | None = None
    """The step of the program behind which it was found."""
    program: str | None = None
    """A whole program that shows it, a step a line, for `ream program`."""
    file: str | None = None
    line: int | None = None
    config: str | None = None
    """The configuration in which the program shows it, unless that is the usual one."""

    @property
    def id(self) -> str:
        """Twelve hexadecimal digits: the same whatever program, lines and numbers show it."""
        return hashlib.sha256(f"{self.rule}\n{self.file or ''}".encode()).hexdigest()[:12]


DIFFERS, BEGINNING = "differs", "beginning"
"""Rules of what is not wrong by itself: another state, and a part of a series that is right."""


@dataclass(frozen=True)
class Wrong:
    """What a series did that the specification forbids."""

    experiment: str
    lines: tuple[str, ...]
    """Row or case, field, what is there and what should be; or the crash."""
    first_patch: tuple[int, str] | None = None
    """The number and the subject of the patch with which it begins, if that was found."""

    shown: Finding | None = None
    """The same as data, of what a program shows; None of what an experiment or a guest does."""

    @property
    def finding(self) -> Finding:
        """The same as data; what no program shows has the experiment's name as its rule."""
        return self.shown or Finding(self.experiment, self.lines[0])


@dataclass(frozen=True)
class SourceLine:
    """A line of the kernel source with the series, counted from 1."""

    file: str
    line: int
    text: str


MOST_MISSED = 3
"""Changed lines or functions in a sentence; --json has all of them."""


@dataclass(frozen=True)
class Examined:
    """What programs showed of a series on a computer that hosts all of mm/.

    functions: that it changes or adds. nr_blocks: of the base's code, in lines that it changes; of
    these, programs execute nr_entered. missed: the changed lines, as file:line with the series, of
    which they execute no block. unexecuted: the changed lines that have code with the series which
    no program executed. nr_steps: of the nr_programs that ran and did nothing wrong.
    differs: where contents, results or state first differ from the base, which is not wrong by
    itself. differing: the program of which that is said, a step a line. same: each file that it
    touches compiles to the same code and data, as far as the computer has it. reached: experiments
    whose rows are programs, as far as a row executes what is changed in the step that it measures.
    files: of those that it changes, the sources of objects that the computer has. config: the
    configuration in which programs execute what is changed, or in which alone anything is; None:
    the one that was asked for.
    """

    functions: tuple[str, ...] = ()
    nr_blocks: int = 0
    nr_entered: int = 0
    nr_programs: int = 0
    nr_steps: int = 0
    missed: tuple[str, ...] = ()
    unexecuted: tuple[SourceLine, ...] = ()
    differs: str | None = None
    differing: str | None = None
    same: bool = False
    wrong: Wrong | None = None
    reached: tuple[Reach, ...] = ()
    files: tuple[str, ...] = ()
    config: str | None = None

    @property
    def misses_all(self) -> bool:
        """Whether no program executed a changed line, though the base has code there."""
        return self.nr_blocks > 0 and not self.nr_entered

    def with_further(self, its: Self) -> Self:
        """The same with what further programs showed, which ran on the same code."""
        executes_more = its if its.nr_entered > self.nr_entered else self
        return replace(
            executes_more,
            nr_programs=self.nr_programs + its.nr_programs,
            nr_steps=self.nr_steps + its.nr_steps,
            differs=self.differs or its.differs,
            differing=self.differing or its.differing,
            wrong=its.wrong,
            reached=self.reached,
            unexecuted=tuple(one for one in self.unexecuted if one in its.unexecuted),
        )

    def words(self) -> str:
        """What was done, in a sentence."""
        if self.same:
            return "the same code and data with it"
        if not self.functions:
            return "no function that is hosted there differs"
        its = ", ".join(f"{name}()" for name in self.functions[:MOST_MISSED])
        if (nr_more := len(self.functions) - MOST_MISSED) > 0:
            its += f" and {counted(nr_more, 'other function')}"
        met = (
            f"{self.nr_entered} of the {counted(self.nr_blocks, 'block')} of code in changed lines"
        )
        where = f"in the configuration {self.config} " if self.config else ""
        what = met if self.nr_blocks else "no line of it"
        said = f"{where}it changes {its}"
        if self.wrong:  # what was executed until then is not all that can be
            return f"{said}; programs execute {what}" if self.nr_entered else said
        said += f"; programs execute {what}"
        if self.missed and not self.unexecuted:
            said += f" (none at {shortened(self.missed, MOST_MISSED)})"
        done = f"{counted(self.nr_programs, 'program')} of {self.nr_steps:,} steps"
        return f"{said}; nothing was wrong in {done}"


@dataclass(frozen=True)
class Listing:
    """A function in a row, without the series and with it: each instruction, how often executed.

    Empty where the function is not executed.
    """

    experiment: str
    row: str
    function: str
    before: str
    after: str


@dataclass(frozen=True)
class Judgement:
    """All that is said of a series."""

    series: str
    subjects: tuple[str, ...]
    tree: str
    machine: str
    reach: WholeReach | None = None
    """Of what experiments host; None: it was decided before that was known."""
    operations: tuple[Operation, ...] = ()
    wrong: Wrong | None = None
    wrong_steps: tuple[tuple[int, str, str], ...] = ()
    """Of a series that is right as a whole, beginnings of it that are wrong: number, subject and
    what was wrong."""
    unhosted: Mapping[str, str] = field(default_factory=dict)
    """By experiment, why it cannot be run with the series."""
    notes: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    """Of each experiment that was timed, in how many rows the positive control was found."""
    own_tables: tuple[str, ...] = ()
    """Of each table that came with the series, whether it holds here."""
    guests: tuple[str, ...] = ()
    """Of each list of the kernel's own tests that was run in guests, what came of it."""
    rows: tuple[RowResult, ...] = ()
    """As counted, of which curves are drawn."""
    listings: tuple[Listing, ...] = ()
    """Instructions of functions that execute more or less, if they were asked for."""
    records: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """The files that the series changes."""
    to: str | None = None
    """Of an upgrade, the label of the kernel source that is judged."""
    command: str = ""
    reproduce: str = ""
    """The command line for others: without a path of this machine."""
    programs: Mapping[str, str] = field(default_factory=dict)
    """By id of a finding, the command line that runs its program, which is kept in a file."""
    strict: bool = False
    """Whether a loss ends with 1 however small it is and whatever others gain."""
    quick: bool = False
    """Whether no row was to be run, so that at best nothing wrong was found."""
    seed: int | None = None
    ream: str = ""
    """The version of ream that judged it."""
    seconds: float | None = None
    """How long that took."""
    whole: Examined | None = None
    """Of all of mm/; None: the kernel cannot be hosted as a whole, or it is an upgrade."""

    @property
    def findings(self) -> Iterator[Finding]:
        """What is wrong, and what may be: the worst first."""
        if self.wrong is not None:
            yield self.wrong.finding
        for number, subject, what in self.wrong_steps:
            yield Finding(BEGINNING, f"up to patch {number}, {subject!r}, it is wrong: {what}")
        if self.whole is not None and (said := self.whole.differs):
            files = self.whole.files
            file = files[0] if len(files) == 1 else None
            config = self.whole.config
            yield Finding(DIFFERS, said, program=self.whole.differing, file=file, config=config)

    def having(self, outcome: Outcome) -> tuple[Operation, ...]:
        """Rows with an outcome, the largest change first."""
        its = [one for one in self.operations if one.outcome == outcome]
        return tuple(sorted(its, key=lambda one: -one.size))

    def ordered(self) -> Iterator[Operation]:
        """All rows, regressions first, and of these the largest first."""
        for outcome in OUTCOMES:
            yield from self.having(outcome)

    @property
    def loss(self) -> float:
        """The size of the largest regression; 0 if there is none."""
        decide = ("slower",) if self.are_counts_misleading else LOSSES
        return max((one.loss for one in self.operations if one.outcome in decide), default=0.0)

    @property
    def are_counts_misleading(self) -> bool:
        """Whether a row is faster although it executes more, as one that fetches memory early is.

        Then rows that execute more, and whose time decides nothing, are no regression.
        """
        return any(its.counted is not None and its.counted.grown for its in self.having("faster"))

    @property
    def gain(self) -> float:
        """The size of the largest gain; 0 if there is none."""
        return max((one.size for o in GAINS for one in self.having(o)), default=0.0)

    @property
    def changes_nothing(self) -> bool:
        """Whether each file that the series touches compiles to the same code and data with it."""
        if (its := self.reach) is None:
            return self.whole is not None and self.whole.same
        hosted = self.whole is not None and self.whole.functions
        return its.same and not hosted and not its.reached and its.elsewhere == ()

    @property
    def is_little(self) -> bool:
        """Whether there is a loss, of LITTLE at most, and a larger gain beside it."""
        return 0 < self.loss <= LITTLE and self.gain > self.loss

    @property
    def unshown(self) -> tuple[Operation, ...]:
        """Rows with an outcome whose evidence does not suffice to say that nothing was lost."""
        limit = LITTLE if self.is_little and not self.strict else GROWTH
        decided = (one for one in self.operations if one.outcome not in ("undecided", "mixed"))
        return tuple(one for one in decided if not one.is_shown(limit))

    @property
    def exit_code(self) -> int:
        """0 none or no change, 1 a regression, 3 cannot run, 4 undecided or not reached, 5 wrong.

        One row is enough for 1, unless its loss is little beside a larger gain. 0 takes evidence
        in each row: counts that suffice alone, or a time that finds effects as small as the
        positive control.
        """
        if self.wrong is not None:
            return VerificationFailed.exit_code
        if self.unhosted and not self.operations:
            return CannotRunHere.exit_code
        if self.changes_nothing:
            return 0
        if self.loss and (self.strict or not self.is_little):
            return ClaimFails.exit_code
        open_ = self.having("undecided") or self.having("mixed") or self.unshown
        if self.are_counts_misleading:
            open_ = open_ or self.having("more")
        return Inconclusive.exit_code if open_ or self.unhosted or not self.operations else 0

    def to_object(self) -> dict[str, Any]:
        """The object of --json; docs/commands.md names its fields."""
        fields = asdict(replace(self, rows=(), listings=()))
        del fields["rows"], fields["listings"]  # of the page for a browser
        for its, one in zip(fields["operations"], self.operations, strict=True):
            its["outcome"], its["decided_by"] = one.outcome, one.decided_by
            its["functions"] = dict(one.functions)
        findings = [{"id": one.id, **asdict(one)} for one in self.findings]
        return {"schema": SCHEMA, "exit": self.exit_code, "findings": findings, **fields}

    @classmethod
    def from_object(cls, value: Mapping[str, Any]) -> Self:
        """The judgement that an object of --json is of. Raises ValueError if it is of none."""
        derived = ("schema", "exit", "findings")
        fields = {name: its for name, its in value.items() if name not in derived}
        fields["operations"] = [
            {name: its for name, its in one.items() if name not in ("outcome", "decided_by")}
            | {"functions": list(one["functions"].items())}
            for one in value["operations"]
        ]
        return TypeAdapter(cls).validate_python(fields)
