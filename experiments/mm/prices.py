# SPDX-License-Identifier: GPL-2.0-only
"""Writes the tables of prices in README.md: what options of a kernel cost in each row.

PYTHONPATH=lab python experiments/mm/prices.py COUNTED TIMED, two records of the same variants. What
the page has of the counted one is kept in counted.json, as the record is large.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ream.experiment import AGAIN, BEFORE
from ream.paths import RECORDS
from ream.record.record import Record

README = Path(__file__).with_name("README.md")
COUNTED = README.with_name("counted.json")
BEGIN, END = "<!-- prices.py writes what follows -->", "<!-- prices.py wrote this -->"
PAGES_OF_A_HUGE_ONE = 512
LONG = 1000
"""A number without decimals from here on."""
MOST_OTHERS_PCT = 10
"""docs/method.md"""


def tables(counted: Any, timed: Any) -> str:
    """Both tables, and which records they are of."""
    base = {row["row"]: row["variants"][BEFORE] for row in counted["rows"]}
    instructions = [_number(name, its["per_page"], "") for name, its in base.items()]
    base = {row["row"]: row["variants"][BEFORE] for row in timed["rows"]}
    ns = [_number(name, its["ns_per_page"], "") for name, its in base.items()]
    above_counts = (
        f"Instructions more per page than in `before`, record `{counted['run']}`. The first"
        "\nline has all that `before` executes. Rows of huge pages have them per 2 MiB.\n"
    )
    others = _others(timed["receipt"])
    above_times = (
        f"\nTime over that of `before`, record `{timed['run']}`, of one run{others},"
        "\nwith 95 % intervals. The first line has ns per page of `before`, the second ratios of a"
        "\nsecond copy of it.\n"
    )
    parts = above_counts, *_table(counted, instructions, _more), above_times
    return "\n".join((*parts, *_table(timed, ns, _ratio)))


def _table(run: Any, first: list[str], cell: Any) -> Iterator[str]:
    rows = run["rows"]
    yield _line("", [f"`{row['row']}`" for row in rows])
    yield _line("---", ["---"] * len(rows))
    yield _line(f"`{BEFORE}`", first)
    for name in rows[0]["variants"]:
        if name == BEFORE or (cell is _more and name == BEFORE + AGAIN):
            continue
        yield _line(f"`{name}`", [cell(row, row["variants"][name]) for row in rows])


def _line(name: str, cells: list[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"


def _number(row: str, per_page: float, sign: str) -> str:
    """A row's number per page, or per huge page in a THP row, with readable digits."""
    number = per_page * (PAGES_OF_A_HUGE_ONE if "thp" in row else 1)
    return f"{number:{sign},.{0 if abs(number) >= LONG else 1}f}"


def _more(row: Any, variant: Any) -> str:
    more = variant["per_page"] - row["variants"][BEFORE]["per_page"]
    return "0" if round(more, 2) == 0 else _number(row["row"], more, "+")


def _ratio(_: Any, variant: Any) -> str:
    return f"{variant['ratio']:.2f} ({variant['low']:.2f} to {variant['high']:.2f})"


def _others(receipt: Any) -> str:
    share = receipt["conditions"]["others_pct"]
    return f", others {share:.0f} %" if share and share > MOST_OTHERS_PCT else ""


def counts_of(run: Any) -> dict[str, Any]:
    """What the page has of a counted run."""
    rows = [
        {
            "row": row["row"],
            "variants": {
                name: {"per_page": its["per_page"]} for name, its in row["variants"].items()
            },
        }
        for row in run["rows"]
    ]
    return {"run": run["run"], "rows": rows}


def run_of(name: str) -> Any:
    """The summary of a record, with its receipt."""
    record = Record.load(name, RECORDS)
    return {**record.run, "receipt": record.receipt}


def page(text: str, counted: Any, timed: Any) -> str:
    """The text of a page with the tables of two records in place of those that it has."""
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{tables(counted, timed)}\n{END}{after}"


def main() -> None:
    """Put the tables of the records named on the command line into the page."""
    counted, timed = (run_of(name) for name in sys.argv[1:])
    kept = counts_of(counted)
    COUNTED.write_text(f"{json.dumps(kept, indent=1)}\n", encoding="utf-8")
    README.write_text(page(README.read_text(encoding="utf-8"), kept, timed), encoding="utf-8")


if __name__ == "__main__":
    main()
