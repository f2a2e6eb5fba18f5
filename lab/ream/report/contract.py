# SPDX-License-Identifier: GPL-2.0-only
"""The object of `--json` and run.json, schema 1: design.md section 8, field by field.

docs/format.md describes every field. Fields are added, never renamed, within a schema number;
so a reader leaves alone what it does not know. Unknown is null, never 0.
"""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ream.values import Scalar, Sealed, Texts, Tuple, faults

Effect = Literal["faster", "slower", "no difference"]


class _Part(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="ignore", strict=True, allow_inf_nan=False, arbitrary_types_allowed=True
    )


class Ratio(_Part):
    """A ratio with its 95 % interval over launches, and the extremes of single launches."""

    ratio: float = Field(gt=0)
    low: float | None = None
    high: float | None = None
    spread_low: float | None = None
    spread_high: float | None = None


class Fill(_Part):
    """One kind of fill of the same bytes: a limit."""

    value: int = Field(gt=0)
    threads: int
    how: str
    ns_per_page: float | None = None
    gb_per_s: float | None = None


class Result(_Part):
    """One variant in one row."""

    median: int = Field(gt=0)
    rounds: int
    nr_bytes: int = Field(gt=0)
    ratio: float | None
    low: float | None = None
    high: float | None = None
    of_limit: float | None = None
    verified: bool
    launches: int | None = None
    threads: int | None = None
    effect: Effect | None = None
    spread_low: float | None = None
    spread_high: float | None = None
    of_limit_low: float | None = None
    of_limit_high: float | None = None
    limit_threads: int | None = None
    ns_per_page: float | None = None
    gb_per_s: float | None = None
    over_published: Ratio | None = None


class Comparison(_Part):
    """A row's published counterpart, and the verdict on it."""

    id: str
    ratio: float | None
    verdict: str
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


class RowResult(_Part):
    row: str
    params: Sealed[str, Scalar | None]
    unit: str
    better: str
    floor: Ratio | None
    limit: Fill | None
    variants: Sealed[str, Result]
    published_table: Comparison | None
    title: str | None = None
    asked_params: Sealed[str, Scalar | None] | None = None
    limits: Tuple[Fill] = ()
    skipped: str | None = None
    explanation: str | None = None
    notes: Texts = ()


class ReceiptLines(_Part):
    """The receipt in a few lines; receipt.json has all of it."""

    machine: str
    tree: str
    patches: str
    compiler: str
    ream: str
    command: str | None = None
    seed: int | None = None
    launches: int | None = None
    load_before: float | None = None
    load_after: float | None = None
    steal_pct: float | None = None
    others_pct: float | None = None
    warnings: Texts = ()


class Summary(_Part):
    schema_: Literal[1] = Field(alias="schema", default=1)
    experiment: str
    stage: str
    run: str
    rows: Tuple[RowResult]
    receipt: ReceiptLines
    question: str | None = None

    def to_object(self) -> dict[str, Any]:
        """What `--json` prints and run.json holds."""
        return self.model_dump(mode="json", by_alias=True)

    @classmethod
    def from_object(cls, value: Mapping[str, Any], *, source: str) -> Self:
        """Read a record's run.json; raises BadUsage naming every field that cannot be right."""
        try:
            return cls.model_validate(dict(value))
        except ValidationError as cause:
            raise faults(source, cause) from cause
