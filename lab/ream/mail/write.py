# SPDX-License-Identifier: GPL-2.0-only
"""Writes a published table as TOML in the form of published.toml, which read_toml() reads."""

import datetime as dt
import json
import re
from collections.abc import Iterator, Mapping

from ream.mail.layout import Parsed
from ream.mail.read import NOT_SAID, Imported
from ream.published import Table
from ream.values import Scalar

HEAD = """\
# SPDX-License-Identifier: GPL-2.0-only
# Read from a mail by `ream replicate --import`; every number as printed there.
"""

_FIELDS = (
    "id", "experiment", "title", "author", "date", "commit", "message_id", "machine", "base",
    "architecture", "cpus", "node_gib", "nr_huge", "unit", "better", "approximate", "claims",
    "method", "inferred",
)  # fmt: skip
"""The fields of a table, in the order that the existing files use."""
_WORTH_ASKING = ("date", "message_id", "base")
"""Optional fields whose absence is noted in a comment."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")
# JSON's escapes are TOML's, but for one control character that JSON leaves alone.
_DELETE = "\x7f"


def to_toml(imported: Imported) -> str:
    """The whole file, with possible results outside the tables in a comment at the end."""
    blocks = [block for one in imported.tables for block in _table(*one)]
    left = [f"#   {_printable(said)}\n" for said in imported.left]
    return "\n".join([HEAD, *blocks, *(["# In no table:\n" + "".join(left)] if left else [])])


def _table(table: Table, parsed: Parsed) -> Iterator[str]:
    yield "[[table]]"
    for name in _FIELDS:
        value = getattr(table, name)
        if value is None:
            if name in _WORTH_ASKING:
                yield f"# {name}: not in the mail"
        elif value is not False and value != ():
            yield f"{name} = {toml_value(value)}{_note(name, value, parsed)}"
    yield f"rows = [{_note('rows', None, parsed)}"
    for row in table.rows:
        parts = {"params": row.params, "values": row.values, "sd": row.sd}
        told = ", ".join(f"{name} = {_inline(part)}" for name, part in parts.items() if part)
        yield f"  {{ {told} }},"
    yield "]\n"


def _note(name: str, value: object, parsed: Parsed) -> str:
    if value == NOT_SAID:
        return "  # not in the mail"
    return f"  # {parsed.notes[name]}" if name in parsed.notes else ""


def _printable(text: str) -> str:
    """The text without control characters, which a TOML comment must not contain."""
    return "".join(c if c.isprintable() else " " for c in text)


def _inline(values: Mapping[str, Scalar]) -> str:
    told = ", ".join(f"{_key(name)} = {toml_value(value)}" for name, value in values.items())
    return f"{{ {told} }}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else toml_value(name)


def toml_value(value: Scalar | dt.date | tuple[Scalar, ...]) -> str:
    """One value or several; in strings, quotes and control characters are escaped."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # Surrogate pairs, which JSON escapes to, are none in TOML: so characters stand as they are.
        text = json.dumps(value, ensure_ascii=False)
        return text.replace(_DELETE, "\\u007f")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    return repr(value)
