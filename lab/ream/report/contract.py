# SPDX-License-Identifier: GPL-2.0-only
"""The object of `--json` and run.json, schema 1, as docs/format.md describes it.

Within a schema number fields are added and never renamed, so readers ignore unknown fields. An
unknown value is null, never 0.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticSerializationError

from ream.experiment import BEFORE, PUBLISHED, BytesOf, shown
from ream.measure.clock import is_fine
from ream.measure.verdict import Word
from ream.values import Scalar, Sealed, Texts, Tuple, faults

Unit = Literal["ns", "instructions"]
Effect = Literal["faster", "slower", "fewer", "more", "equal", "undecided", "no difference"]
"""Times are faster or slower, counts of instructions fewer or more. Older records have "no
difference" for both "equal" and "undecided"."""


WALL_TIME = "wall time"
"""The name of the time beside a row's own where that is CPU time."""

# Wider than any machine, narrow enough that a damaged record cannot break a table.
Number = Annotated[int, Field(gt=0, lt=1 << 63)]
Positive = Annotated[float, Field(gt=1e-99, lt=1e99)]
Cpus = Annotated[int, Field(ge=1, lt=10_000)]  # NR_CPUS is at most 8192 on x86
Count = Annotated[int, Field(ge=0, lt=1 << 31)]
Tally = Annotated[int, Field(ge=0, lt=1 << 63)]
Quantity = Annotated[float, Field(ge=0, lt=1e99)]
Chance = Annotated[float, Field(ge=0, le=1)]
Difference = Annotated[float, Field(gt=-1e99, lt=1e99)]


class _Part(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="ignore", strict=True, allow_inf_nan=False, arbitrary_types_allowed=True
    )


class Ratio(_Part):
    """A ratio with its 95 % interval over launches, and the extremes of single launches."""

    ratio: Positive
    low: Positive | None = None
    high: Positive | None = None
    spread_low: Positive | None = None
    spread_high: Positive | None = None


class Fill(_Part):
    """One kind of fill of the same bytes, which bounds what the hardware allows."""

    value: Number
    threads: Cpus
    how: str
    ns_per_page: Positive | None = None
    gb_per_s: Positive | None = None


Group = Sealed[str, Tally | Ratio]
ColumnValue = Tally | Quantity | Ratio | Group | None
"""The summary of a column over samples: a median, a ratio, or a group of either."""

COLUMNS = "compaction"
"""The key of a variant's columns, named after the first experiment that had any."""


class Layout(_Part):
    """Whether a variant's ratio depends on the memory layout of a launch.

    p_value: of a test whether launches differ by more than their rounds explain. within: the
    typical distance of a round from the median of its launch, as a ratio of at least 1.
    """

    p_value: Chance
    within: Positive
    depends: bool


class Result(_Part):
    """One variant in one row."""

    model_config = ConfigDict(populate_by_name=True)

    median: Number
    rounds: Count
    nr_bytes: Tally
    ratio: Positive | None
    low: Positive | None = None
    high: Positive | None = None
    of_limit: Positive | None = None
    verified: bool
    launches: Count | None = None
    threads: Cpus | None = None
    effect: Effect | None = None
    spread_low: Positive | None = None
    spread_high: Positive | None = None
    of_limit_low: Positive | None = None
    of_limit_high: Positive | None = None
    limit_threads: Cpus | None = None
    per_page: Positive | None = None
    ns_per_page: Positive | None = None
    gb_per_s: Positive | None = None
    per_entry: Positive | None = None
    over_published: Ratio | None = None
    per_batch: Positive | None = None
    columns: Sealed[str, ColumnValue] | None = Field(
        default=None, validation_alias=COLUMNS, serialization_alias=COLUMNS
    )
    p_value: Chance | None = None
    layout: Layout | None = None
    cpu_ns: Tally | None = None
    cpu_s_per_gib: Quantity | None = None
    cpu_over_before: Ratio | None = None
    compared_with: str | None = None
    """For a given series, the variant that its ratios refer to: the tree that it is based on."""
    within: Positive | None = None
    """For a ratio that is no effect, the bound on the effect: 1.02 means within 2 %."""
    launches_needed: Count | None = None
    """For an undecided ratio, the approximate number of launches that would decide it."""


class BesideResult(_Part):
    """The median of one variant, and its ratio to the variant that it is compared with."""

    median: Number
    over_before: Ratio | None = None


class Beside(_Part):
    """Another time of the operation that a row measures, such as its whole or a part of it."""

    name: str
    unit: Unit
    variants: Sealed[str, BesideResult]


class LiveSlope(_Part):
    """The time of each further page, from a smaller row to this one, in ns: medians over launches.

    kind: the call and the size of folios. hosted: by variant. over: the running kernel's slope
    over the variant's; None where noise makes a slope negative in any launch.
    """

    kind: str
    smaller: str
    ns_per_page: float
    hosted: Sealed[str, float]
    over: Sealed[str, Ratio | None]


class LiveTime(_Part):
    """What the running kernel took for the row's program, in turn with the hosted variants.

    ns: as the median of a variant. over: its time over each variant's. slope: None if the run has
    no smaller row of the same kind.
    """

    ns: Positive
    over: Sealed[str, Ratio | None]
    slope: LiveSlope | None = None


class Comparison(_Part):
    """The published counterpart of a row, and the verdict on it."""

    id: str
    ratio: Positive | None
    verdict: Word
    reason: str | None = None
    before: float | None = None
    published: float | None = None
    unit: str | None = None
    params: Sealed[str, Scalar] = Field(default={}, validate_default=True)
    title: str | None = None
    author: str | None = None
    date: str | None = None
    message_id: str | None = None
    machine: str | None = None
    base: str | None = None
    approximate: bool = False
    claims: str | None = None
    differs: Texts = ()
    value: str | None = None
    before_sd: float | None = None
    published_sd: float | None = None
    threads: Cpus | None = None
    cpus: Cpus | None = None
    node_gib: Number | None = None
    gb_per_s: Positive | None = None
    better: str | None = None
    stand_in: str | None = None
    """The substitute used here for the table's device, if that substitute is not a model of it."""
    inferred: Texts = ()
    model: str | None = None
    """The declared model of the table's device that is used here, with its parameters."""


class Whole(_Part):
    """The complete call that a published table timed, where the row times only a part of it.

    whole_ns and left_out_ns are medians on the running kernel; left_out_low and left_out_high bound
    the 95 % interval of the latter. share: the part's share of the whole. ratio and floor are those
    that the whole call would have; verdicts use them.
    """

    name: str
    whole_ns: Positive | None
    left_out_ns: Quantity
    left_out_low: Quantity
    left_out_high: Quantity
    share: Chance | None
    how: str
    ratio: Ratio | None = None
    floor: Ratio | None = None


class Control(_Part):
    """The positive control, `before` slowed by a known share, and whether the row found it."""

    asked: Positive
    found: bool | None


class ClockUsed(_Part):
    """The clock that all times of a row are of, and the noise of both clocks that chose it.

    wall_noise, cpu_noise: the median ratio of at least 1 between two copies of `before` in a round,
    in the first launches.
    """

    used: Literal["wall", "CPU"]
    wall_noise: Positive
    cpu_noise: Positive


class PatchStep(_Part):
    """Two variants, the second with one more patch, which are prefixes of the variant `of`."""

    before: str
    after: str
    subject: str
    of: str


class Counted(_Part):
    """What one sample of each variant executed, in whole numbers, for a row that was counted.

    per, number: the unit of the shown averages, and how many such units a sample covers; numbers:
    the same by variant, for those whose samples cover another number. repeats: whether all samples
    of one kernel are equal; in guests, whether their clocks agree to one in ten thousand. variants,
    stand_ins: totals by variant and quantity, of the kernel's own functions and of our substitutes.
    functions: totals by variant and function. inclusive: the same for functions that called others,
    with what these did.
    """

    per: str
    number: Number
    repeats: bool
    variants: Sealed[str, Sealed[str, Tally]]
    stand_ins: Sealed[str, Sealed[str, Tally]]
    functions: Sealed[str, Sealed[str, Sealed[str, Tally]]]
    inclusive: Sealed[str, Sealed[str, Sealed[str, Tally]]] = Field(
        default={}, validate_default=True
    )
    own: Texts = ()
    """Variants other than those that only contain a prefix of another variant's patches."""
    steps: Tuple[PatchStep] = ()
    numbers: Sealed[str, Number] = Field(default={}, validate_default=True)

    def number_of(self, variant: str) -> int:
        """How many units a sample of this variant covers."""
        return self.numbers.get(variant, self.number)


class RowResult(_Part):
    """All results of one row."""

    row: str
    params: Sealed[str, Scalar | None]
    unit: Unit
    better: str
    floor: Ratio | None
    limit: Fill | None
    variants: Sealed[str, Result]
    published_table: Comparison | None
    published_tables: Tuple[Comparison] = ()
    title: str | None = None
    asked_params: Sealed[str, Scalar | None] | None = None
    limits: Tuple[Fill] = ()
    skipped: str | None = None
    explanation: str | None = None
    notes: Texts = ()
    remarks: Texts = ()
    bytes_of: BytesOf = "map"
    whole: Whole | None = None
    base_adds: str | None = None
    beside: Tuple[Beside] = ()
    counted: Counted | None = None
    smallest_effect: Positive | None = None
    control: Control | None = None
    live: LiveTime | None = None
    clock: ClockUsed | None = None
    """The clock of the row's times. None: it is wall time, as no other can be used."""
    between_runs: Quantity | None = None
    """The standard deviation of log ratios between earlier runs, which smallest_effect includes."""
    floors: Sealed[str, Ratio | None] = Field(default={}, validate_default=True)
    """Noise floors, by name, of variants other than `before` that others are compared with."""

    def floor_of(self, name: str) -> Ratio | None:
        """The noise floor that the ratio of this variant is compared with."""
        its = self.variants.get(name)
        to = None if its is None else its.compared_with
        return self.floors.get(to, self.floor) if to else self.floor

    @property
    def published(self) -> Result | None:
        """The result of the technique, by its name in records or the one for readers."""
        return self.variants.get(PUBLISHED) or self.variants.get(shown(PUBLISHED))

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """All published counterparts of the row, also in records that have only one."""
        first = () if self.published_table is None else (self.published_table,)
        return self.published_tables or first


class GridLine(_Part):
    """The rates of one subject with one number of channels, one cell per column of the grid."""

    subject: str
    channels: Count
    cells: Tuple[float | None]
    sd: Tuple[float | None] = ()
    note: str | None = None


class Grid(_Part):
    """Rates by number of channels and folio size, of this run or of a published table."""

    unit: str
    better: str
    columns: Texts
    lines: Tuple[GridLine]
    id: str | None = None
    source: str | None = None
    notes: Texts = ()


class PrintedLine(_Part):
    """One line of a published table, as printed."""

    params: Sealed[str, Scalar]
    values: Sealed[str, int | float]
    sd: Sealed[str, int | float] = Field(default={}, validate_default=True)


class PrintedTable(_Part):
    """A published table of several quantities, for rows that measure the same quantities."""

    id: str
    source: str
    machine: str
    method: str
    unit: str
    better: str
    lines: Tuple[PrintedLine]
    nr_huge: Count | None = None


class Batch(_Part):
    """Time per page by part of the operation, for one batch size, in ns; call_ns is per batch."""

    subject: str
    batch_pages: Count
    page_ns: Positive | None = None
    copy_ns: Difference | None = None
    flush_ns: Difference | None = None
    rest_ns: Positive | None = None
    dma_page_ns: Positive | None = None
    call_ns: Positive | None = None


class ReceiptLines(_Part):
    """A short form of the receipt; receipt.json contains all of it."""

    machine: str
    tree: str
    patches: str
    compiler: str
    ream: str
    guest: str | None = None
    count: str | None = None
    command: str | None = None
    seed: int | None = None
    launches: Count | None = None
    load_before: float | None = None
    load_after: float | None = None
    steal_pct: float | None = None
    others_pct: float | None = None
    cpu_clock_step_ns: int | None = None
    warnings: Texts = ()


class Summary(_Part):
    """The complete object of `--json` for one run."""

    schema_: Literal[1] = Field(alias="schema", default=1)
    experiment: str
    stage: str
    run: str
    rows: Tuple[RowResult]
    receipt: ReceiptLines
    question: str | None = None
    limited_by: str | None = None
    limit_kind: str | None = None
    """What the limit is, `bound` or `plain loop`; None in older records."""
    found_live: str | None = None
    untouched: Sealed[str, str] = Field(default={}, validate_default=True)
    """Given series that were not measured, with the reason. They appear in no row. Either no row
    executes the changed code, or it needs what the stage does not provide."""
    wrong: Sealed[str, Texts] = Field(default={}, validate_default=True)
    """Variants that failed verification, with what they did in lines. They appear in no row."""
    grids: Tuple[Grid] = ()
    tables: Tuple[PrintedTable] = ()
    batches: Tuple[Batch] = ()

    @property
    def doubts(self) -> Texts:
        """What may bias the run as a whole, in sentences.

        A note on a row, such as how small an effect it can see, is no doubt.
        """
        return self.receipt.warnings

    def to_object(self) -> dict[str, Any]:
        """The object that `--json` prints and run.json contains."""
        return self.model_dump(mode="json", by_alias=True)

    def wrong_words(self) -> tuple[str, ...]:
        """One line for each variant that failed verification; `wrong` has the details."""
        return tuple(f"{name}: WRONG: {lines[0]}" for name, lines in self.wrong.items() if lines)

    def plain(self) -> Self:
        """The same summary with every text in printable ASCII.

        Names come from files and mails, and a report must suit any terminal and any mailer.
        """
        return self if self._is_plain() else self.model_validate(_plain(self.to_object()))

    def _is_plain(self) -> bool:
        """Whether all of it is so already, as nearly always; JSON shows that sooner than a walk."""
        try:
            text = self.model_dump_json(by_alias=True)
        except PydanticSerializationError:  # half of a surrogate pair is in no UTF-8
            return False
        return text.isascii() and not _NOT_PRINTABLE.search(text)

    @classmethod
    def from_object(cls, value: Mapping[str, Any], *, source: str) -> Self:
        """Read a record's run.json; raises BadUsage naming every invalid field."""
        try:
            summary = cls.model_validate(dict(value))
        except ValidationError as cause:
            raise faults(source, cause) from cause
        native = summary.stage == "native" and summary.receipt.count is None
        if not native or summary.receipt.cpu_clock_step_ns is not None:
            return summary
        rows = tuple(_without_coarse_cpu_times(row) for row in summary.rows)
        return summary.model_copy(update={"rows": rows})


def _without_coarse_cpu_times(row: RowResult) -> RowResult:
    """The row without CPU times too short for a clock of unknown step, and ratios of such ones."""
    fine = {
        name: one.cpu_ns is not None and is_fine(one.cpu_ns, None)
        for name, one in row.variants.items()
    }
    none = dict.fromkeys(("cpu_ns", "cpu_s_per_gib", "cpu_over_before"))
    variants = {
        name: one
        if fine[name] and fine.get(one.compared_with or BEFORE, False)
        else one.model_copy(update={"cpu_over_before": None} if fine[name] else none)
        for name, one in row.variants.items()
    }
    return row.model_copy(update={"variants": variants})


_NOT_PRINTABLE = re.compile(r'\\[^"\\]|\x7f')
"""In JSON, an escape of what is not printable, or DEL, which has none."""


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        if value.isascii() and value.isprintable():
            return value
        text = value.encode("ascii", "backslashreplace").decode("ascii")
        return "".join(c if c.isprintable() else "?" for c in text)
    if isinstance(value, dict):
        return {_plain(key): _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value
