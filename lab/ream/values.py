# SPDX-License-Identifier: GPL-2.0-only
"""Frozen, strict values read from TOML files, with every fault of a file told at once."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    ValidationError,
    WrapSerializer,
)

from ream.errors import BadUsage

LONGEST_VALUE = 60
"""Characters of a faulty value worth repeating to its author."""

Scalar = bool | int | float | str

K = TypeVar("K")
V = TypeVar("V")


class Value(BaseModel):
    """A value that cannot change, knows all its fields, and coerces nothing."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, arbitrary_types_allowed=True
    )


def _seal(mapping: Mapping[K, V]) -> Mapping[K, V]:
    return MappingProxyType(dict(mapping))


def _unseal(mapping: Mapping[K, V], serialise: SerializerFunctionWrapHandler) -> Any:
    return serialise(dict(mapping))


# A frozen value must not grow through a list or a dict it holds.
# TOML gives lists where we keep tuples: those fields alone are not strict, what they hold is.
Sealed = Annotated[Mapping[K, V], AfterValidator(_seal), WrapSerializer(_unseal)]
Tuple = Annotated[tuple[V, ...], Field(strict=False)]
Texts = Tuple[str]
Scalars = Sealed[str, Scalar]


Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,62}$")]
"""A name that can be a file name, a JSON key and a word on a command line; the C side has room
for 63 characters."""


_FOLDER = re.compile(r"[A-Za-z0-9][\w.+-]*(/[A-Za-z0-9][\w.+-]*)*", re.ASCII)


def _inside(folder: str) -> str:
    if not _FOLDER.fullmatch(folder):
        raise ValueError("not a folder below kernel/series, as before/NAME is")
    return folder


Folder = Annotated[str, AfterValidator(_inside)]
"""Below kernel/series, or `series` of an experiment: a name that leads out of it is none."""


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file; raises BadUsage naming the file and what is wrong with it."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as cause:
        raise BadUsage(f"{path}: {cause.strerror}") from cause
    except UnicodeDecodeError as cause:
        raise BadUsage(f"{path}: not a text file (byte {cause.start} is not UTF-8)") from cause
    except RecursionError as cause:
        raise BadUsage(f"{path}: nested too deeply to be meant") from cause
    except ValueError as cause:  # tomllib's own error, and int()'s about thousands of digits
        raise BadUsage(f"{path}: {cause}") from cause


def faults(source: str, error: ValidationError, *, rows: Sequence[int] = ()) -> BadUsage:
    """All faults of one value, each once, one line each: `source: field: fault (it is value)`.

    rows: by row of the value, the place in its file of the row that it was made from.
    """
    # That a default could not be made from another, faulty field is no fault of its own.
    own = [fault for fault in error.errors() if fault["type"] != "default_factory_not_called"]
    return BadUsage("\n".join(dict.fromkeys(_say(source, fault, rows) for fault in own)))


def _say(source: str, fault: Mapping[str, Any], rows: Sequence[int]) -> str:
    steps = [*fault["loc"]]
    if rows and steps[0] == "rows" and len(steps) > 1:
        steps[1] = rows[steps[1]]
    where = ".".join(str(step) for step in steps)
    said = in_our_words(str(fault["msg"]))
    # A fault between fields, or a missing one, is reported with the whole table as its value.
    value = "" if isinstance(fault["input"], Mapping) else f" (it is {_short(fault['input'])})"
    return ": ".join(part for part in (source, where, said) if part) + value


def in_our_words(said: str) -> str:
    """What is wrong with a value, without the words of the library that has found it."""
    said = said.removeprefix("Value error, ")
    said = re.sub(r", unable to parse string as an? \w+$", "", said)
    return re.sub(r"^Input should be ", "must be ", said)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."
