# SPDX-License-Identifier: GPL-2.0-only
"""A cell: one row with all of its variants, in one line of JSON that says all there is to do.

It holds every variant of its row, so that before and after never come from two machines; and what
makes numbers comparable (version, benchmark, series, tree), so that a checkout which would measure
something else notices.
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
"""Of a cell; docs/format.md says what it means."""

ID_DIGITS = 12
"""Of the SHA-256 of a cell's content: its name."""

LARGEST_BYTES = 64 << 20
"""No cell is that long: what is no cell is not read to its end."""


class PatchText(Value):
    """A patch of the user's, which other checkouts do not have."""

    name: str
    subject: str
    body: str
    options: Sealed[str, str] = Field(default={}, validate_default=True)
    """By fragment, what a kernel with this patch is configured with beside it."""

    def patch(self) -> Patch:
        return Patch(self.name, self.subject, self.body.encode(), tuple(self.options.items()))

    @classmethod
    def of(cls, patch: Patch) -> Self:
        """Raises BadUsage if it is not UTF-8, as JSON has to be."""
        try:
            body = patch.body.decode()
        except UnicodeDecodeError as cause:
            raise BadUsage(
                f"{patch.name}: byte {cause.start} is not UTF-8, so no cell can hold it; convert it"
            ) from cause
        return cls(name=patch.name, subject=patch.subject, body=body, options=dict(patch.options))


class SeriesWanted(Value):
    """A series of a variant: which one it has to be, and where its patches are."""

    name: Name
    id: str
    folder: Folder | None = None
    """Of kernel/series."""
    patches: Tuple[PatchText] | None = None
    """Of the user's, in no folder of ours."""

    def series(self) -> Series:
        """Its patches, as this checkout has them; raises BadUsage if it has none."""
        if self.folder is None:
            return Series(self.name, tuple(one.patch() for one in self.patches or ()))
        return load_series(SERIES / self.folder, name=self.name)


class TreeWanted(Value):
    """The kernel source: where it lies on every host or which base, and which it has to be."""

    path: str | None = None
    base: str | None = None
    """As --base has it; None without a path: the default one."""
    key: str | None = None
    """None: whichever the host has; `ream merge` then refuses to pool two."""
    version: str | None = None


class Cell(Value):
    """One row of an experiment, to be measured on one machine, whichever it is."""

    model_config = ConfigDict(serialize_by_alias=True)

    schema_number: int = Field(alias="schema")
    ream: str
    """Version of ream that planned it."""
    benchmark: str
    experiment: str
    question: str
    stage: Stage
    row: Sealed[str, Any]
    """As an experiment's file has it."""
    params: Sealed[str, Scalar | None]
    """What it comes to: a checkout with other defaults notices."""
    variants: Sealed[Name, Tuple[SeriesWanted]]
    tree: TreeWanted | None
    """None in the live stage: the kernel that runs."""
    launches: int = Field(ge=1, le=MAX_LAUNCHES)
    seed: int = Field(ge=0)
    threads: int | None = Field(default=None, ge=1)
    guest: GuestOptions | None = None
    repeat: int = Field(default=0, ge=0)
    machines: int = Field(default=1, ge=1)
    """How many machines it is wanted from."""

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
        return id_of(self.content())

    @property
    def row_name(self) -> str:
        return str(self.row.get("name"))

    def content(self) -> dict[str, Any]:
        """All that is wanted, without the id, which is made of it."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def to_line(self) -> str:
        """The line of JSON, without its end."""
        content = self.content()
        return json.dumps({"id": id_of(content), **content}, allow_nan=False)


def id_of(content: Mapping[str, Any]) -> str:
    """The first digits of the SHA-256 of the content, however its keys are ordered."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]


def read_cell(text: str, *, where: str) -> Cell:
    """A cell from its line; where: what it came from, for the message.

    Raises BadUsage if it is none, if its schema is another one, or if it was changed since it was
    planned, which its id tells.
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
    """Every cell of a file, one a line; raises BadUsage at the first line that is none."""
    return tuple(
        read_cell(line, where=f"{path}:{number}")
        for number, line in enumerate(read_text(path).splitlines(), start=1)
        if line.strip()
    )


def read_text(path: Path) -> str:
    """A file of cells; raises BadUsage saying why it cannot be read."""
    return read_given(path, largest_bytes=LARGEST_BYTES, what="cells")


def wanted(
    variant: Variant, folders: Sequence[str] | None, experiment: Path
) -> tuple[SeriesWanted, ...]:
    """A variant's series as a cell has them; folders: theirs, None of a variant of the user's.

    experiment: its folder; series in it are told with their patches, as the user's are. Raises
    BadUsage for a patch that no cell can hold.
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
