# SPDX-License-Identifier: GPL-2.0-only
"""A cell: one row with all of its variants, as one line of JSON that describes the complete task.

It contains every variant of its row, so that ratios never combine two machines. It also contains
version, benchmark, series and tree, so that a checkout that would measure something else notices.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from ream.errors import BadUsage
from ream.experiment import IMPLIED, Stage
from ream.experiment.shape import MAX_LAUNCHES
from ream.files import read_given
from ream.kernel.series import Patch, Series, load_series, own_series
from ream.paths import SERIES
from ream.session.request import GuestOptions
from ream.values import Folder, Name, Scalar, Sealed, Tuple, Value, faults
from ream.variants import Variant

SCHEMA = 1
"""The schema number of a cell, described in docs/format.md."""

ID_DIGITS = 12
"""Digits of the SHA-256 of a cell's content that form its id."""

LARGEST_BYTES = 64 << 20
"""The size limit of a file of cells."""


class PatchText(Value):
    """A patch given by the user, which other checkouts do not have."""

    name: str
    subject: str
    body: str
    options: Sealed[str, str] = Field(default={}, validate_default=True)
    """Configuration options that a kernel with this patch needs, by fragment."""

    def patch(self) -> Patch:
        """The patch in the form that a series uses."""
        return Patch(self.name, self.subject, self.body.encode(), tuple(self.options.items()))

    @classmethod
    def of(cls, patch: Patch) -> Self:
        """The patch as text; raises BadUsage if it is not UTF-8, which JSON requires."""
        try:
            body = patch.body.decode()
        except UnicodeDecodeError as cause:
            raise BadUsage(
                f"{patch.name}: byte {cause.start} is not UTF-8, so no cell can hold it; convert it"
            ) from cause
        return cls(name=patch.name, subject=patch.subject, body=body, options=dict(patch.options))


class SeriesWanted(Value):
    """A series of a variant: its id, and the place or the text of its patches."""

    name: Name
    id: str
    folder: Folder | None = None
    """The folder below kernel/series; None for a series with its own patches."""
    patches: Tuple[PatchText] | None = None
    """The patches of a series outside kernel/series."""

    def series(self) -> Series:
        """The series as this checkout has it; raises BadUsage if it is missing."""
        if self.folder is None:
            return Series(self.name, tuple(one.patch() for one in self.patches or ()))
        return load_series(SERIES / self.folder, name=self.name)


class TreeWanted(Value):
    """The kernel source: its path on every host or its base, and its expected content."""

    path: str | None = None
    base: str | None = None
    """A base as --base takes it; None without a path is the default base."""
    key: str | None = None
    """None accepts the source that the host has; `ream merge` refuses to pool different ones."""
    version: str | None = None


class Cell(Value):
    """One row of an experiment, to be measured on one machine."""

    model_config = ConfigDict(serialize_by_alias=True)

    schema_number: int = Field(alias="schema")
    ream: str
    """The version of ream that planned it."""
    benchmark: str
    experiment: str
    question: str
    stage: Stage
    row: Sealed[str, Any]
    """The row's fields as in an experiment's file."""
    params: Sealed[str, Scalar | None]
    """The resulting parameters, which reveal a checkout with other defaults."""
    variants: Sealed[Name, Tuple[SeriesWanted]]
    tree: TreeWanted | None
    """None in the live stage, which uses the running kernel."""
    launches: int = Field(ge=1, le=MAX_LAUNCHES)
    seed: int = Field(ge=0)
    threads: int | None = Field(default=None, ge=1)
    guest: GuestOptions | None = None
    repeat: int = Field(default=0, ge=0)
    machines: int = Field(default=1, ge=1)
    """The number of machines that are to measure it."""

    @model_validator(mode="after")
    def _there_is_something_to_compare(self) -> Self:
        if missing := [name for name in IMPLIED if name not in self.variants]:
            raise ValueError(f"variants: no {' and no '.join(missing)} to compare with")
        if (self.tree is None) != (self.stage == "live"):
            raise ValueError("tree: it is null in the live stage, and only there")
        if self.tree is not None and self.tree.path is not None and self.tree.base is not None:
            raise ValueError("tree: it has a path and a base, and each names the kernel source")
        return self

    @property
    def id(self) -> str:
        """The id of the cell, computed from its content."""
        return id_of(self.content())

    @property
    def row_name(self) -> str:
        """The name of the row."""
        return str(self.row.get("name"))

    def content(self) -> dict[str, Any]:
        """All fields except the id, which is computed from them."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def to_line(self) -> str:
        """The cell as a line of JSON without newline."""
        content = self.content()
        return json.dumps({"id": id_of(content), **content}, allow_nan=False)


def id_of(content: Mapping[str, Any]) -> str:
    """The first digits of the SHA-256 of the content, independent of the order of its keys."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]


def read_cell(text: str, *, where: str) -> Cell:
    """Read a cell from its line; where: its origin for error messages.

    Raises BadUsage if it is no cell, if its schema is another one, or if its id shows that it was
    changed after it was planned.
    """
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise BadUsage(f"{where}: not a cell: not one line of JSON; `ream plan` makes cells") from (
            cause
        )
    if not isinstance(fields, dict) or "id" not in fields:
        raise BadUsage(f"{where}: not a cell: an object with an id; `ream plan` makes cells")
    asked = fields.pop("id")
    schema = fields.get("schema")
    if type(schema) is not int or schema != SCHEMA:
        raise BadUsage(f"{where}: a cell of schema {schema!r}; this ream reads schema {SCHEMA}")
    if asked != (found := id_of(fields)):
        raise BadUsage(
            f"{where}: cell {asked!r} was changed after it was planned: its content is that of "
            f"{found}; plan a new one"
        )
    try:
        return Cell.model_validate_json(json.dumps(fields))  # in JSON a list may be a tuple
    except ValidationError as cause:
        raise faults(f"{where}: cell {asked}", cause) from cause


def read_cells(path: Path) -> tuple[Cell, ...]:
    """Every cell of a file, one per line; raises BadUsage at the first line that is none."""
    return tuple(
        read_cell(line, where=f"{path}:{number}")
        for number, line in enumerate(read_text(path).splitlines(), start=1)
        if line.strip()
    )


def read_text(path: Path) -> str:
    """The contents of a file of cells; raises BadUsage if it cannot be read."""
    return read_given(path, largest_bytes=LARGEST_BYTES, what="cells")


def wanted(
    variant: Variant, folders: Sequence[str] | None, experiment: Path
) -> tuple[SeriesWanted, ...]:
    """A variant's series in the form of a cell.

    folders: those of the series; None for a variant of the user's. experiment: its folder; series
    inside it are included with their patches, as the user's are. Raises BadUsage for a patch that
    is not UTF-8.
    """
    known: Sequence[str | None] = folders if folders is not None else [None] * len(variant.series)
    return tuple(
        SeriesWanted(name=series.name, id=series.id, folder=folder)
        if folder is not None and own_series(folder, experiment) is None
        else SeriesWanted(
            name=series.name, id=series.id, patches=tuple(map(PatchText.of, series.patches))
        )
        for series, folder in zip(variant.series, known, strict=True)
    )
