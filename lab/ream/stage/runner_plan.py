# SPDX-License-Identifier: GPL-2.0-only
"""Writes the plan that a runner reads: a line of `key=value` words per row (native/host/plan.c).

The fields are defined once, in `row.def` of an experiment's folder. The runner's structure and its
table of fields are made from that file, and every line is checked against it.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ream.errors import ReamError

Value = str | int | Path | None | Iterable[int | Path | None]
"""The value of a field: text, a number, a file or None; some kinds of fields take several."""

NONE = "-"
"""Value for a missing file."""

_FIELD = re.compile(r"^(?:ROW|REQUEST)\((\w+), (\w+)", re.MULTILINE)
_MAY_BE_LEFT_OUT = {"IMAGE_OR_NONE"}
_LISTS = {"LONGS", "IMAGES"}
_TYPES: Mapping[str, tuple[type, ...]] = MappingProxyType(
    {
        **dict.fromkeys(("TEXT", "CHOICE"), (str,)),
        **dict.fromkeys(("UINT", "ULONG", "LONGS"), (int, np.integer)),
        "IMAGE": (Path,),
        **dict.fromkeys(("IMAGE_OR_NONE", "IMAGES"), (Path, type(None))),
    }
)


class Memory:
    """Unnamed files, which runners open by descriptor. None is left behind if a process dies."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._arrays: dict[int, tuple[object, Path]] = {}
        self.descriptors: list[int] = []

    def file(self, name: str) -> tuple[int, Path]:
        """Make an empty file; return its descriptor and the path by which a runner opens it."""
        descriptor = os.memfd_create(name)
        self._stack.callback(os.close, descriptor)
        self.descriptors.append(descriptor)
        return descriptor, Path(f"/proc/self/fd/{descriptor}")

    def write(self, name: str, chunks: Iterable[bytes | memoryview]) -> Path | None:
        """Make a file of these bytes; None if there are none."""
        descriptor, path = self.file(name)
        with os.fdopen(descriptor, "wb", closefd=False) as to:
            return path if sum(to.write(chunk) for chunk in chunks) else None

    def array(self, array: NDArray[Any] | None) -> Path | None:
        """Make a file of an array, once for all rows that use it; None if it is empty."""
        if array is None or not array.size:
            return None
        if id(array) not in self._arrays:
            octets = np.ascontiguousarray(array).view(np.uint8).reshape(-1).data
            path = self.write("array", (octets,))
            assert path is not None
            # A reference is kept so that no other array gets this id.
            self._arrays[id(array)] = (array, path)
        return self._arrays[id(array)][1]


@cache
def _fields(definition: Path) -> Mapping[str, str]:
    """Return the kinds of all fields, by name."""
    return {name: kind for kind, name in _FIELD.findall(definition.read_text(encoding="ascii"))}


def _text(value: object) -> str:
    if value is None:
        return NONE
    return str(int(value)) if isinstance(value, (int, np.integer)) else str(value)


def line(definition: Path, words: Mapping[str, Value]) -> str:
    """Return a line of a plan. Raises ReamError, with the field's name, for invalid words."""
    fields = _fields(definition)
    needed = {name for name, kind in fields.items() if kind not in _MAY_BE_LEFT_OUT}
    faults = [f"no value for {name}" for name in sorted(needed - words.keys())]
    said = []
    for name, value in words.items():
        if (kind := fields.get(name)) is None:
            faults.append(f"no field {name}")
            continue
        several = kind in _LISTS and isinstance(value, Iterable) and not isinstance(value, str)
        values = list(value) if several else [value]  # type: ignore[arg-type]
        texts = [_text(one) for one in values]
        right = all(isinstance(one, _TYPES[kind]) for one in values)
        if not right or any(re.search(r"\s", text) or not text for text in texts):
            faults.append(f"{name}: no value of the kind {kind} ({value})")
        said.append(f"{name}={','.join(texts)}")
    if faults:
        raise ReamError(f"{definition}: {'; '.join(faults)}")
    return " ".join(said) + "\n"


@contextmanager
def plan_of_trees(
    plans: Iterable[AbstractContextManager[tuple[Path, tuple[int, ...]]]], work: Path
) -> Iterator[tuple[Path, tuple[int, ...]]]:
    """Merge the plans of several trees into one, which has each row of every tree in turn.

    Raises ReamError if their rows differ.
    """
    with ExitStack() as stack:
        entered = [stack.enter_context(one) for one in plans]
        if len(entered) == 1:
            yield entered[0]
            return
        texts = [plan.read_text().splitlines(keepends=True) for plan, _ in entered]
        if len({len(text) for text in texts}) > 1:
            raise ReamError("the kernels of two trees are not asked for the same rows")
        plan = work / "plans.txt"
        plan.write_text("".join(line for lines in zip(*texts, strict=True) for line in lines))
        yield plan, tuple(number for _, numbers in entered for number in numbers)


@contextmanager
def plan_file(
    definition: Path, work: Path, rows: Callable[[Memory], Iterable[Mapping[str, Value]]]
) -> Iterator[tuple[Path, tuple[int, ...]]]:
    """Yield the plan of some rows and the descriptors of its files, which exist within the block.

    definition: the experiment's row.def. rows: returns the words of each row, and makes files in
    the memory that it is given.
    """
    with ExitStack() as stack:
        memory = Memory(stack)
        plan = work / "plan.txt"
        plan.write_text("".join(line(definition, words) for words in rows(memory)))
        yield plan, tuple(memory.descriptors)
