# SPDX-License-Identifier: GPL-2.0-only
"""The table of a run: plain ASCII, at most 100 columns, from the object of `--json` alone."""

import textwrap
from collections.abc import Iterable, Iterator

from ream.experiment import BEFORE, BEFORE_AGAIN, IMPLIED, PUBLISHED
from ream.report.contract import Comparison, Fill, Ratio, Result, RowResult, Summary

WIDTH = 100
LABEL = 10
"""Columns of the words at the left of head and notes."""
NAME = 18
MAX_IN_SHORT = 3
TEN = 10
"""From here on a ratio has one decimal, to fit its column."""

_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))


def render(summary: Summary) -> str:
    """The whole table, ending in a newline."""
    blocks = ["\n".join(_head(summary))]
    blocks += ["\n".join(_row(row)) for row in summary.rows]
    if short := list(_in_short(summary)):
        blocks.append("\n".join(short))
    if summary.receipt.warnings:
        blocks.append("\n".join(_all("doubt", summary.receipt.warnings, indent=0)))
    return ascii_only("\n\n".join(blocks)) + "\n"


def ascii_only(text: str) -> str:
    """Names come from files and mails; the table must survive any terminal and any mailer."""
    printable = text.encode("ascii", "backslashreplace").decode("ascii")
    return "".join(c if c == "\n" or " " <= c <= "~" else "?" for c in printable)


def _head(summary: Summary) -> Iterator[str]:
    receipt = summary.receipt
    yield f"ream {summary.experiment}, {summary.stage} stage"
    if summary.question:
        yield from _said("question", summary.question, indent=0)
    yield from _said("machine", receipt.machine, indent=0)
    yield from _said("base", f"{receipt.tree}; {receipt.compiler}", indent=0)
    if receipt.patches:
        yield from _said("patches", receipt.patches, indent=0)
    yield from _said("measured", _measured(summary), indent=0)
    yield from _said(
        "read",
        "time, lower is better; ratio = variant / before with its 95 % interval over launches; "
        "of limit = fastest fill of the same bytes / variant, 1 is the hardware's limit. "
        f"{PUBLISHED} is our own writing of the published technique, on this base.",
        indent=0,
    )
    yield from _said("record", summary.run, indent=0)


def _measured(summary: Summary) -> str:
    receipt = summary.receipt
    parts = [f"ream {receipt.ream}"]
    if receipt.launches is not None:
        parts.append(f"{receipt.launches} launches")
    if receipt.seed is not None:
        parts.append(f"seed {receipt.seed}")
    if receipt.load_before is not None:
        parts.append(f"load {receipt.load_before:.2f} before, {_or(receipt.load_after)} after")
    if receipt.steal_pct is not None:
        parts.append(f"steal {receipt.steal_pct:.1f} %")
    if receipt.others_pct is not None:
        parts.append(f"other programs {receipt.others_pct:.1f} %")
    return ", ".join(parts)


def _or(value: float | None) -> str:
    return "?" if value is None else f"{value:.2f}"


def _row(row: RowResult) -> Iterator[str]:
    before = row.variants.get(BEFORE)
    amount = f"; {before.nr_bytes / 1e6:,.1f} MB of map a sample" if before is not None else ""
    yield from textwrap.wrap(
        f"{row.row}: {row.title or '?'}{amount}", WIDTH, subsequent_indent="  "
    )
    if row.skipped is None and row.variants:
        yield from _numbers(row)
    if row.published_table is not None:
        yield from _published(row.published_table)
    if row.explanation is not None:
        yield from _said("why", row.explanation)
    yield from _all("note", row.notes)


def _numbers(row: RowResult) -> Iterator[str]:
    scale, unit = _unit([result.median for result in row.variants.values()])
    yield _line(
        "", unit, "ratio [low .. high]", "effect", "of limit", "ns/page", "GB/s", "CPUs", "ok"
    )
    for name, result in row.variants.items():
        if name != BEFORE_AGAIN:
            yield from _variant(name, result, scale)
    for fill in _best(row.limits or ((row.limit,) if row.limit else ())):
        yield _line(
            f"limit {fill.how}",
            f"{fill.value / scale:.2f}",
            "",
            "",
            "1",
            _number(fill.ns_per_page),
            _number(fill.gb_per_s),
            str(fill.threads),
            "",
        )
    yield from _said("floor", _floor(row.floor))
    if spread := _spread(row):
        yield from _said("launches", spread)


def _variant(name: str, result: Result, scale: float) -> Iterator[str]:
    if len(name) > NAME:  # a name of the user's own: on a line of its own rather than cut
        yield f"  {name}"
        name = ""
    yield _line(
        name,
        f"{result.median / scale:.2f}",
        "1" if result.ratio == 1 and result.low is None else interval(result),
        _effect(result),
        _number(result.of_limit),
        _number(result.ns_per_page),
        _number(result.gb_per_s),
        _number(result.threads),
        "yes" if result.verified else "NO",
    )


def _line(*cells: str) -> str:
    name, median, ratio, effect, near, per_page, rate, cpus, verified = cells
    return (
        f"  {name:<{NAME}}{median:>9} {ratio:>22}  {effect:<13} {near:>8} {per_page:>7}"
        f" {rate:>6} {cpus:>4} {verified:>3}"
    ).rstrip()


def interval(value: Result | Ratio) -> str:
    """A ratio with its interval in 22 columns, however large it is."""
    if value.ratio is None:
        return "?"
    digits = 3 if max(value.ratio, value.high or 0) < TEN else 1
    ratio, low, high = (
        "?" if number is None else f"{number:.{digits}f}"
        for number in (value.ratio, value.low, value.high)
    )
    return f"{ratio} [{low} .. {high}]"


def _effect(result: Result) -> str:
    """By what factor, as in 2.23x faster, or that there is no difference."""
    if result.effect is None or result.ratio is None:
        return ""
    if result.effect == "no difference":
        return result.effect
    factor = 1 / result.ratio if result.ratio < 1 else result.ratio
    return f"{factor:.2f}x {result.effect}"


def _best(limits: Iterable[Fill]) -> list[Fill]:
    """The fastest fill of each number of CPUs."""
    best: dict[int, Fill] = {}
    for fill in limits:
        if fill.threads not in best or fill.value < best[fill.threads].value:
            best[fill.threads] = fill
    return [best[threads] for threads in sorted(best)]


def _floor(floor: Ratio | None) -> str:
    if floor is None:
        return f"none: {BEFORE} was not measured against its second copy"
    return f"{interval(floor)}, {BEFORE} against its second copy"


def _spread(row: RowResult) -> str:
    return ", ".join(
        f"{name} {result.spread_low:.3f} to {result.spread_high:.3f}"
        for name, result in row.variants.items()
        if result.spread_low is not None and result.spread_high is not None
    )


def _published(table: Comparison) -> Iterator[str]:
    source = ", ".join(part for part in (table.author, table.date) if part)
    values = ""
    if table.before is not None and table.published is not None:
        values = f"{table.before:g} -> {table.published:g} {table.unit or ''}".rstrip() + ", "
    about = "about " if table.approximate else ""
    ratio = "no ratio" if table.ratio is None else f"ratio {about}{table.ratio:.3f}"
    more = "".join(f"; {part}" for part in (table.claims, table.machine) if part)
    yield from _said("table", f"{table.id} ({source}): {values}{ratio}{more}")
    yield from _said("verdict", f"{table.verdict.upper()}: {table.reason or 'no reason recorded'}")
    if table.differs:
        yield from _said("differs", "; ".join(table.differs))


def _in_short(summary: Summary) -> Iterator[str]:
    """One line a row, where the variants fit beside each other; a long run's last lines."""
    names = [
        name
        for name in dict.fromkeys(name for row in summary.rows for name in row.variants)
        if name not in IMPLIED
    ]
    if not names or len(names) > MAX_IN_SHORT:
        return
    yield "in short: effect against before, share of the hardware's limit, published table"
    yield _short_line("", [*names, "published table"])
    for row in summary.rows:
        cells = [_in_few_words(row.variants.get(name)) for name in names]
        table = row.published_table
        yield _short_line(row.row, [*cells, table.verdict if table is not None else ""])


def _short_line(row: str, cells: Iterable[str]) -> str:
    return (f"{row:<20}" + "".join(f"{cell:<22}" for cell in cells)).rstrip()


def _in_few_words(result: Result | None) -> str:
    """The effect and the share of the limit, as in 2.23x faster, 0.90."""
    if result is None:
        return "not run"
    near = "" if result.of_limit is None else f", {result.of_limit:.2f}"
    return (_effect(result) or "?") + near


def _unit(times_ns: Iterable[float]) -> tuple[float, str]:
    """The unit in which the smallest time of a block is at least 1."""
    smallest = min(times_ns)
    return next(((scale, unit) for scale, unit in _UNITS if smallest >= scale), _UNITS[-1])


def _number(value: float | None) -> str:
    """Two decimals, as wide as a column; unknown is a question mark, never 0."""
    if value is None:
        return "?"
    return str(value) if isinstance(value, int) else f"{value:.2f}"


def _said(label: str, text: str, *, indent: int = 2) -> Iterator[str]:
    """A labelled paragraph, wrapped under itself."""
    yield from textwrap.wrap(
        text,
        WIDTH,
        initial_indent=f"{' ' * indent}{label:<{LABEL}}",
        subsequent_indent=" " * (indent + LABEL),
        break_on_hyphens=False,
    )


def _all(label: str, texts: Iterable[str], *, indent: int = 2) -> Iterator[str]:
    for text in texts:
        yield from _said(label, text, indent=indent)
