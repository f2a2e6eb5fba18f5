# SPDX-License-Identifier: GPL-2.0-only
"""Writes docs/predictions.md: what types of CPU predict of each other, and how often that holds.

PYTHONPATH=lab:tests:. python tests/predictions.py
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from ream.experiment import BASE, named
from ream.experiment.registry import names
from ream.history.pooled import pooled, ratios_in
from ream.history.predict import Prediction, predictions
from ream.paths import CHECKOUT, RECORDS

PAGE = CHECKOUT / "docs" / "predictions.md"
OURS, TECHNIQUE = "ream", "published"
NR_OF_OURS = 10

HEAD = """\
<!-- SPDX-License-Identifier: GPL-2.0-only -->
# What one type of CPU predicts of another

Each ratio below is predicted for a type of CPU from the kept runs on the other types, by a rule
that never sees the type's own runs (`ream history --predict`, `lab/ream/history/predict.py`). The
interval is the one in which 95 % of further types would lie, if types were alike. They are not:
where only types of one vendor are left to predict from, their spread is too small for the other.

The rows are all that have a published table, for the published technique, and {ours} rows of ours,
in the order of the SHA-256 of their names. A type without runs of a row shows the prediction
alone: it was there before anything was measured.
"""


def chosen(found: Iterable[Prediction]) -> list[Prediction]:
    """The predictions of the page."""
    tabled = {(name, row.name) for name in names() for row in named(name).rows if row.published}
    every = [one for one in found if one.place[2] in (OURS, TECHNIQUE, BASE)]
    rows = {one.place[:2] for one in every if one.place[2] == OURS}
    few = sorted(rows, key=lambda it: hashlib.sha256(" ".join(it).encode()).digest())[:NR_OF_OURS]
    return [
        one
        for one in every
        if (one.place[2] == TECHNIQUE and one.place[:2] in tabled)
        or (one.place[2] == OURS and one.place[:2] in few)
    ]


def page(found: Sequence[Prediction]) -> str:
    """All of docs/predictions.md."""
    return "\n".join((HEAD.format(ours="ten"), *_coverage(found), "", *_table(found), ""))


def _coverage(found: Sequence[Prediction]) -> Iterator[str]:
    known = [one for one in found if one.holds is not None]
    held = sum(bool(one.holds) for one in known)
    share = f", {100 * held / len(known):.0f} %" if known else ""
    yield f"{held} of {len(known)} measured ratios lie where they were predicted{share}.\n"
    yield "| type of CPU | technique | ours | not measured |"
    yield "|---|---|---|---|"
    for cpu in sorted({one.cpu for one in found}):
        its = [one for one in found if one.cpu == cpu]
        cells = []
        for variant in (TECHNIQUE, OURS):
            told = [one.holds for one in its if one.place[2] == variant and one.found is not None]
            cells.append(f"{sum(map(bool, told))} of {len(told)}")
        nr_open = sum(one.found is None for one in its)
        yield f"| {cpu} | {cells[0]} | {cells[1]} | {nr_open} |"


def _table(found: Sequence[Prediction]) -> Iterator[str]:
    for cpu in sorted({one.cpu for one in found}):
        yield f"## {cpu}\n"
        yield "| row | variant | predicted | types | measured |"
        yield "|---|---|---|---|---|"
        for one in found:
            if one.cpu != cpu:
                continue
            experiment, row, variant = one.place
            name = row if row.startswith(experiment) else f"{experiment} {row}"
            said = "" if one.found is None else f"{one.found.ratio:.3f}"
            said += " **outside**" if one.holds is False else ""
            predicted = f"{one.ratio:.3f} [{one.low:.3f} .. {one.high:.3f}]"
            word = "technique" if variant == TECHNIQUE else "ours"
            yield f"| {name} | {word} | {predicted} | {one.nr_types} | {said} |"
        yield ""


def written() -> str:
    """The page as the kept records have it now."""
    return page(chosen(predictions(pooled(ratios_in(RECORDS)))))


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
