# SPDX-License-Identifier: GPL-2.0-only
"""A mail into published tables: find the layout, and leave out no number of it."""

from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from ream.errors import BadUsage
from ream.mail import bars, columns, logs
from ream.mail.layout import Found, Layout, Parsed
from ream.mail.text import Line, headers, lines_of
from ream.published import Table
from ream.values import faults

LAYOUTS = (
    Layout("bindings", logs.BINDINGS, "zone-device", logs.read_bindings),
    Layout("threads", columns.THREADS, "deferred-init", columns.read_by_threads),
    Layout("boot-log", logs.BOOT_LOG, "deferred-init", logs.read_boot_log),
    Layout("folio-size", bars.FOLIO_KIB, "fork", bars.read_by_folio),
    Layout("channels", bars.CHANNELS, "migrate", bars.read_by_channels),
    Layout("modes", columns.MODES, "compact", columns.read_by_mode),
)
"""Every layout that is known, with the experiment whose table it is."""

NOT_SAID = "not said"
"""What a field holds that a table must have and the mail does not."""

LONGEST_LINE = 70
"""Characters of a faulty line worth repeating to who pasted it."""


def import_text(mail: bytes, facts: Mapping[str, str | None]) -> tuple[tuple[Table, Parsed], ...]:
    """Every table of a mail, each with what its text says of it.

    facts: id, experiment, title, author and machine, where the user gives them; they go before
    what the mail says. Raises BadUsage with the first line that was not understood.
    """
    lines = lines_of(mail)
    layout, found = _layout(lines)
    _nothing_left_out(lines, found, layout)
    asked = facts.get("experiment")
    if asked is not None and asked != layout.experiment:
        raise BadUsage(
            f"--experiment {asked}: the layout {layout.name!r} has tables of {layout.experiment}"
        )
    given = {**headers(lines), **{name: value for name, value in facts.items() if value}}
    name = given.get("id", f"{layout.experiment}-imported")
    several = len(found.tables) > 1
    return tuple(
        (_table(parsed, layout, given, f"{name}-{number}" if several else name), parsed)
        for number, parsed in enumerate(found.tables, start=1)
    )


def _layout(lines: Sequence[Line]) -> tuple[Layout, Found]:
    found = [(layout, its) for layout in LAYOUTS if (its := layout.read(lines)) is not None]
    if found:
        return max(found, key=lambda one: len(one[1].understood))
    told = [line for line in lines if line.text]
    if not told:
        raise BadUsage("there is no text to read a table from")
    first = next((line for line in told if line.looks_like_data), told[0])
    known = "".join(f"\n  {one.name}: {one.looks_like}" for one in LAYOUTS)
    raise BadUsage(f"{_quoted(first)}: not understood; the layouts known are{known}")


def _nothing_left_out(lines: Sequence[Line], found: Found, layout: Layout) -> None:
    """Raise BadUsage at a line that may be one of the table's, but was not understood.

    Text around a table is nobody's business; what stands between its lines, or follows the last
    without a blank line, may be a row that a mailer has broken.
    """
    first, last = min(found.understood), max(found.understood)
    after = next((line.number for line in lines if line.number > last and not line.text), None)
    end = after if after is not None else (lines[-1].number + 1 if lines else 0)
    for line in lines:
        if line.number in found.understood or not first < line.number < end:
            continue
        if line.looks_like_data:
            raise BadUsage(
                f"{_quoted(line)}: not understood; the layout {layout.name!r} looks like "
                f"{layout.looks_like}"
            )
    if found.lacks is not None:
        raise BadUsage(found.lacks)
    if not all(table.rows for table in found.tables):
        said = _quoted(next(line for line in lines if line.number == last))
        raise BadUsage(f"{said}: no line of the table follows it")


def _quoted(line: Line) -> str:
    text = line.text if len(line.text) <= LONGEST_LINE else line.text[:LONGEST_LINE] + "..."
    return f"line {line.number}: {text!r}"


def _table(parsed: Parsed, layout: Layout, given: Mapping[str, str], name: str) -> Table:
    fields: dict[str, object] = {
        "id": name,
        "experiment": layout.experiment,
        "title": given.get("title", NOT_SAID),
        "author": given.get("author", NOT_SAID),
        "machine": given.get("machine") or parsed.facts.get("machine", NOT_SAID),
        "method": parsed.method,
        "unit": parsed.unit,
        "better": parsed.better,
        "rows": parsed.rows,
        **{
            name: parsed.facts[name]
            for name in ("base", "cpus", "node_gib")
            if name in parsed.facts
        },
    }
    if "message_id" in given:
        fields["message_id"] = given["message_id"]
    if "date" in given:
        from datetime import date  # noqa: PLC0415

        fields["date"] = date.fromisoformat(given["date"])
    try:
        return Table.model_validate(fields)
    except ValidationError as cause:
        raise faults("the table", cause) from cause
