# SPDX-License-Identifier: GPL-2.0-only
"""The judgement of a series: an outcome for each row, one for the whole, and an exit status.

No outcome is stronger than its evidence. Times are decided together over all rows of a run, against
the noise of two copies of the same kernel. Counts are exact, but are no measure of time.
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
"""Outcomes of a row, the worst first. Decided by time: slower, equal and faster; equal only if the
bound on the time is too small for what the counts show. Decided by counts alone: more, mixed (more
of one quantity and fewer of another), same (no quantity differs by more than GROWTH) and fewer. If
the interval of the time excludes 1 in the direction opposite to the counts, the row is undecided.
"""

LOSSES: tuple[Outcome, ...] = ("slower", "more")
GAINS: tuple[Outcome, ...] = ("faster", "fewer")

BY_TIME: Mapping[str | None, Outcome] = {
    "slower": "slower", "equal": "equal", "faster": "faster",
}  # fmt: skip
"""Outcomes by the effect on the time; for any other effect, counts decide."""

GROWTH = 0.001
"""Share up to which a count may grow without being a cost, as in `ream check --counts`."""

LITTLE = 0.01
"""Share up to which a loss is called little: about the effect of where code lies in memory."""

TIME, COUNTS = "time", "counts"
"""What decides a row if no single quantity does: its time, or that all counts are the same."""

WEIGHED = ("instructions", "locked")
"""Quantities that are printed, and that measure how much a row is affected."""

COSTS = (*WEIGHED, "loads", "stores", "fences", "lines_read", "lines_written")
"""Quantities whose growth is a cost. More of another quantity, as prefetches, may be a gain."""

ORDERED = ("locked", "streaming", "fences")
"""Operations that take far longer than others. If there are more of them, counts do not bound the
time."""


@dataclass(frozen=True)
class CountedChange:
    """Counts of a row for each page or entry, with and without the series."""

    per: str
    before: Mapping[str, float]
    after: Mapping[str, float]
    repeats: bool
    """Whether all samples of one kernel have the same counts."""

    def share(self, quantity: str) -> float:
        """Return the growth of a quantity as a share of what it was; infinite if it was 0."""
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
        """The largest change of any quantity, as a share."""
        return max(abs(self.share(name)) for name in QUANTITIES)

    def most(self, sign: int) -> tuple[str, float]:
        """Return the cost that grew most (sign 1) or shrank most (-1), and its share."""
        return max(((n, self.share(n)) for n in COSTS), key=lambda its: sign * its[1])

    def decider(self, sign: int) -> str:
        """Return the quantity that decides a row which executes more (sign 1) or fewer (-1).

        It is one of WEIGHED if its change is of the same order as that of the cost that changed
        most. There are three orders: up to GROWTH, up to LITTLE, and more.
        """
        most, share = self.most(sign)
        weighed = max(WEIGHED, key=lambda name: sign * self.share(name))
        own = sign * self.share(weighed)
        return weighed if own > 0 and _order(own) == _order(sign * share) else most

    def suffices(self, limit: float) -> bool:
        """Whether these counts alone show that the row has no loss.

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
    """Return the order of a change: 0 up to GROWTH, 1 up to LITTLE, 2 beyond."""
    return (share > GROWTH) + (share > LITTLE)


@dataclass(frozen=True)
class TimedChange:
    """The time of a row with the series over that without it."""

    ratio: float
    low: float | None
    high: float | None
    effect: str | None
    """The effect as the record names it; None if it could not be decided."""
    within: float | None
    """If no effect was found, the bound on the ratio: 1.02 is within 2 %."""
    smallest_effect: float | None
    """The smallest ratio above 1 that would be found with a probability of 90 %."""
    control: bool | None = None
    """Whether the positive control was found in this row; None if there was none."""
    before_ns: float | None = None
    """The time without the series for each of `per`, which is a page, an entry or a call."""
    per: str = "call"


@dataclass(frozen=True)
class PatchStep:
    """Changes of a row's counts by one patch of the series."""

    number: int
    subject: str
    changes: Mapping[str, float]
    """Changes by quantity, for each page or entry; empty if all counts are equal."""


@dataclass(frozen=True)
class Operation:
    """One row that the series reaches, with its counts and times."""

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
        """The outcome by its time or, if the time is not decisive, by its counts.

        A row is undecided if the interval of its time contradicts its counts, or if its counts are
        the same and the whole interval of its time is a loss.
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
        """What decided the outcome: TIME, COUNTS or the name of a quantity; None if undecided."""
        outcome = self.outcome
        if outcome in BY_TIME.values():
            return TIME
        if outcome == "undecided" or self.counted is None:
            return None
        return COUNTS if outcome == "same" else self.counted.decider(-1 if outcome in GAINS else 1)

    def is_shown(self, limit: float) -> bool:
        """Whether the evidence would show a loss beyond a limit, which is a share.

        Either the counts alone suffice, or the time found an effect or the positive control.
        """
        if self.counted is not None and self.counted.suffices(limit):
            return True
        its = self.timed
        return its is not None and (its.effect in ("slower", "faster") or its.control is True)

    @property
    def hides_counts(self) -> bool:
        """Whether the time is equal only within a bound too wide to exclude the counted change.

        If locked operations grow from none, their share is infinite, and no bound suffices.
        """
        its, change = self.timed, self.counted
        if its is None or its.effect != "equal" or change is None or not change.repeats:
            return False
        grown = [share for name in WEIGHED if (share := change.share(name)) > GROWTH]
        room = float("inf") if its.within is None else its.within - 1
        return any(share < room or share == float("inf") for share in grown)

    @property
    def loss(self) -> float:
        """The size of the regression, by counts that of the cost that grew most; 0 if none."""
        if self.outcome not in LOSSES:
            return 0.0
        if self.outcome == "slower" or self.counted is None:
            return self.size
        return self.counted.most(1)[1]

    @property
    def size(self) -> float:
        """The size of the change, by which rows are sorted; at least 0."""
        if self.timed is not None and self.timed.effect in ("slower", "faster"):
            return abs(self.timed.ratio - 1)
        return affected(self.counted)


def affected(change: CountedChange | None) -> float:
    """Return how much a row is affected: the change of its instructions or locked operations.

    If neither changes, it is the change of the cost that changes most. All are shares.
    """
    if change is None:
        return float("inf")
    weighed = max(abs(change.share(name)) for name in WEIGHED)
    return weighed or max(abs(change.share(name)) for name in COSTS)


@dataclass(frozen=True)
class Finding:
    """One finding about a series, for programs that show it beside the code.

    file, line: the nearest changed line of the kernel source, from 1. Unknown fields are None.
    """

    rule: str
    """The rule that was broken, independent of the series; docs/format.md lists the kinds."""
    message: str
    step: str | None = None
    """The step of the program after which it was found."""
    program: str | None = None
    """A whole program for `ream program` that shows it, with one step per line."""
    file: str | None = None
    line: int | None = None
    config: str | None = None
    """The configuration in which the program shows it; None: the usual one."""

    @property
    def id(self) -> str:
        """Twelve hexadecimal digits that do not depend on the program, lines and numbers shown."""
        return hashlib.sha256(f"{self.rule}\n{self.file or ''}".encode()).hexdigest()[:12]


DIFFERS, BEGINNING = "differs", "beginning"
"""Rules of findings that are not wrong by themselves: a state that differs from the base, and a
wrong prefix of a series that is right as a whole."""


@dataclass(frozen=True)
class Wrong:
    """What a series did that the specification forbids."""

    experiment: str
    lines: tuple[str, ...]
    """Row or case, field, actual and expected value; or the crash."""
    first_patch: tuple[int, str] | None = None
    """Number and subject of the first patch at which it is wrong, if that was found."""

    shown: Finding | None = None
    """The finding as data if a program shows it; None if an experiment or a guest does."""

    @property
    def finding(self) -> Finding:
        """The finding as data; if no program shows it, its rule is the experiment's name."""
        return self.shown or Finding(self.experiment, self.lines[0])


@dataclass(frozen=True)
class SourceLine:
    """A line of the kernel source with the series, counted from 1."""

    file: str
    line: int
    text: str


MOST_MISSED = 3
"""The most changed lines or functions in a sentence; --json has all of them."""


@dataclass(frozen=True)
class Examined:
    """Results of running programs with a series on a computer that hosts all of mm/.

    functions: functions that the series changes or adds. nr_blocks: basic blocks of the base's code
    in lines that it changes; programs execute nr_entered of them. missed: changed lines, as
    file:line with the series, of which programs execute no block. unexecuted: changed lines with
    code in the series that no program executed. nr_steps: steps of the nr_programs that ran and did
    nothing wrong. differs: where contents, results or state first differ from the base, which is
    not wrong by itself. differing: the program that shows this, one step per line. same: whether
    each touched file compiles to the same code and data, as far as the computer has it. reached:
    experiments whose rows are programs, if a row executes changed code in the step that it
    measures. files: changed files that are sources of the computer's objects. config: the
    configuration in which programs execute what is changed, or the only one in which code changes;
    None: the one that was asked for.
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
        """Whether no program executed a changed line although the base has code there."""
        return self.nr_blocks > 0 and not self.nr_entered

    def with_further(self, its: Self) -> Self:
        """Return these results with those of further programs, which ran on the same code."""
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
        """Return a sentence on what was run and found."""
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
        if self.wrong:  # programs ended early, so more might be executed
            return f"{said}; programs execute {what}" if self.nr_entered else said
        said += f"; programs execute {what}"
        if self.missed and not self.unexecuted:
            said += f" (none at {shortened(self.missed, MOST_MISSED)})"
        done = f"{counted(self.nr_programs, 'program')} of {self.nr_steps:,} steps"
        return f"{said}; nothing was wrong in {done}"


@dataclass(frozen=True)
class Listing:
    """A function in a row, without and with the series: instructions and how often each executed.

    Empty if the function is not executed.
    """

    experiment: str
    row: str
    function: str
    before: str
    after: str


@dataclass(frozen=True)
class Judgement:
    """The judgement of a series or an upgrade."""

    series: str
    subjects: tuple[str, ...]
    tree: str
    machine: str
    reach: WholeReach | None = None
    """What the series changes of the hosted code; None: judged before that was known."""
    operations: tuple[Operation, ...] = ()
    wrong: Wrong | None = None
    wrong_steps: tuple[tuple[int, str, str], ...] = ()
    """Prefixes of the series that are wrong although the whole series is right. Each is the number
    of its last patch, that patch's subject, and what was wrong."""
    unhosted: Mapping[str, str] = field(default_factory=dict)
    """Reasons why experiments cannot be run with the series, by experiment."""
    notes: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    """A line for each timed experiment: in how many rows the positive control was found."""
    own_tables: tuple[str, ...] = ()
    """A line for each table that came with the series: whether it holds here."""
    guests: tuple[str, ...] = ()
    """A line for each list of the kernel's own tests that was run in guests: its result."""
    rows: tuple[RowResult, ...] = ()
    """The counted rows, from which curves are drawn."""
    listings: tuple[Listing, ...] = ()
    """Listings of functions that execute more or less, if they were asked for."""
    records: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """The files that the series changes."""
    to: str | None = None
    """Label of the kernel source that an upgrade is judged for; None if a series is judged."""
    command: str = ""
    reproduce: str = ""
    """The command line without paths of this machine, for use elsewhere."""
    programs: Mapping[str, str] = field(default_factory=dict)
    """Command lines that run a finding's program from its file, by the finding's id."""
    strict: bool = False
    """Whether any loss gives exit status 1, however small it is and whatever other rows gain."""
    quick: bool = False
    """Whether no rows were run by request; then the best result is that no fault was found."""
    seed: int | None = None
    ream: str = ""
    """The version of ream that made the judgement."""
    seconds: float | None = None
    """Seconds that the judgement took."""
    whole: Examined | None = None
    """The check of all of mm/; None: the kernel cannot be hosted whole, or it is an upgrade."""

    @property
    def findings(self) -> Iterator[Finding]:
        """Yield what is wrong and what may be wrong, the worst first."""
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
        """Return the rows with an outcome, the largest change first."""
        its = [one for one in self.operations if one.outcome == outcome]
        return tuple(sorted(its, key=lambda one: -one.size))

    def ordered(self) -> Iterator[Operation]:
        """Yield all rows, regressions first, and the largest of these first."""
        for outcome in OUTCOMES:
            yield from self.having(outcome)

    @property
    def loss(self) -> float:
        """The size of the largest regression; 0 if there is none."""
        decide = ("slower",) if self.are_counts_misleading else LOSSES
        return max((one.loss for one in self.operations if one.outcome in decide), default=0.0)

    @property
    def are_counts_misleading(self) -> bool:
        """Whether a row is faster although it executes more, as prefetching code may be.

        Then a row that executes more is no regression unless its time decides so.
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
        """Whether there is a loss of at most LITTLE, and a larger gain."""
        return 0 < self.loss <= LITTLE and self.gain > self.loss

    @property
    def unshown(self) -> tuple[Operation, ...]:
        """Decided rows whose evidence might miss a loss."""
        limit = LITTLE if self.is_little and not self.strict else GROWTH
        decided = (one for one in self.operations if one.outcome not in ("undecided", "mixed"))
        return tuple(one for one in decided if not one.is_shown(limit))

    @property
    def exit_code(self) -> int:
        """0 no loss or change, 1 a regression, 3 cannot run, 4 undecided or not reached, 5 wrong.

        One row suffices for 1, unless its loss is little beside a larger gain. 0 needs evidence in
        each row: counts that suffice alone, or a time that finds effects as small as the positive
        control.
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
        """Return the object of --json; docs/commands.md documents its fields."""
        fields = asdict(replace(self, rows=(), listings=()))
        del fields["rows"], fields["listings"]  # only the HTML page has them
        for its, one in zip(fields["operations"], self.operations, strict=True):
            its["outcome"], its["decided_by"] = one.outcome, one.decided_by
            its["functions"] = dict(one.functions)
        findings = [{"id": one.id, **asdict(one)} for one in self.findings]
        return {"schema": SCHEMA, "exit": self.exit_code, "findings": findings, **fields}

    @classmethod
    def from_object(cls, value: Mapping[str, Any]) -> Self:
        """Return the judgement in an object of --json; raises ValueError if there is none."""
        derived = ("schema", "exit", "findings")
        fields = {name: its for name, its in value.items() if name not in derived}
        fields["operations"] = [
            {name: its for name, its in one.items() if name not in ("outcome", "decided_by")}
            | {"functions": list(one["functions"].items())}
            for one in value["operations"]
        ]
        return TypeAdapter(cls).validate_python(fields)
