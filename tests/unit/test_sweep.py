# SPDX-License-Identifier: GPL-2.0-only
"""Rows that differ in one number make a curve; rows that were not run make a line."""

from collections.abc import Iterable

import pytest

from ream.report.contract import Result, RowResult
from ream.report.html.charts import kinds
from ream.report.html.curves import curves
from ream.report.not_run import NotRun, not_run
from ream.report.sweep import ends_of, sweeps, words_of
from ream.values import Scalar


def result(ratio: float, **more: float | str) -> Result:
    fields = {
        "median": int(100 * ratio),
        "rounds": 3,
        "nr_bytes": 64,
        "ratio": ratio,
        "verified": True,
    }
    return Result.model_validate({**fields, "ns_per_page": 10 * ratio, **more})


def row(name: str, params: dict[str, Scalar | None], **more: object) -> RowResult:
    fields = {
        "row": name,
        "params": params,
        "unit": "ns",
        "better": "lower",
        "floor": None,
        "limit": None,
        "variants": {
            "before": result(1, of_limit=0.5),
            "ream": result(0.5, low=0.4, high=0.6, effect="faster"),
        },
        "published_table": None,
    }
    return RowResult.model_validate({**fields, **more})


def rows_of(operation: str, kib: Iterable[int], *, how: str = "") -> list[RowResult]:
    return [
        row(f"{operation}-{one}k{how}", {"operation": operation, "folio_kib": one, "nr_ptes": 7})
        for one in kib
    ]


def test_rows_whose_names_differ_in_a_number_are_a_curve_each_operation_its_own() -> None:
    found = sweeps([*rows_of("fork", (64, 4, 16)), *rows_of("exit", (4, 16, 64))])
    assert [one.name for one in found] == ["fork-*", "exit-*"]
    assert {one.field for one in found} == {"folio_kib"}
    assert found[0].labels == ("4k", "16k", "64k")
    assert [one.row for one in found[0].rows] == ["fork-4k", "fork-16k", "fork-64k"]


def test_another_word_in_the_name_is_another_curve() -> None:
    found = sweeps([*rows_of("fork", (4, 16, 64)), *rows_of("fork", (4, 16, 64), how="-cold")])
    assert [one.name for one in found] == ["fork-*", "fork-*-cold"]


@pytest.mark.parametrize(
    ("titles", "field", "said"),
    [
        ("fork of 1 GiB, folios of {} KiB, warm", "folio_kib", "fork of 1 GiB, warm"),
        ("rw-to-r of {} KiB, private folios", "call_kib", "rw-to-r, private folios"),
        ("r of 4 MiB, private folios of {} KiB", "folio_kib", "r of 4 MiB, private folios"),
        ("64 GiB, {} threads", "threads", "64 GiB"),
        ("move 64 MiB, {} pages a call, copied", "batch_pages", "move 64 MiB, copied"),
        ("{} GiB", "memory_gib", "some-*"),
    ],
)  # fmt: skip
def test_a_title_has_what_rows_share_and_not_their_number(
    titles: str, field: str, said: str
) -> None:
    rows = [row(f"some-{one}", {field: one}, title=titles.format(one)) for one in (4, 16, 64)]
    (found,) = sweeps(rows)
    assert found.title == said


def test_rows_without_titles_have_their_common_name() -> None:
    (found,) = sweeps(rows_of("fork", (4, 16, 64)))
    assert found.title == "fork-*"
    fields = ("folio_kib", "batch_pages", "nr_pages", "nr_cpus", "vmas")
    said = ["folio size", "pages of a batch", "memory", "number of cpus", "vmas"]
    assert [*map(words_of, fields)] == said


def test_the_longer_of_two_axes_is_swept_and_a_row_is_in_one_curve() -> None:
    rows = [
        row(f"{kib}k-{channels}-channels", {"folio_kib": kib, "channels": channels})
        for channels in (1, 2, 4)
        for kib in (4, 16, 64, 256)
    ]
    found = sweeps(rows)
    assert [one.name for one in found] == [f"*-{channels}-channels" for channels in (1, 2, 4)]
    assert sum(len(one.rows) for one in found) == len(rows)


def test_a_number_in_another_unit_is_the_one_that_is_meant() -> None:
    rows = [row(f"set-{gib}GiB", {"calls": 10 - gib, "zone_bytes": gib << 30}) for gib in (1, 2, 4)]
    (found,) = sweeps(rows)
    assert found.field == "zone_bytes"


@pytest.mark.parametrize(
    "rows",
    [
        rows_of("fork", (4, 16)),
        [row(f"fork-{n}", {"threads": 1}) for n in (1, 2, 3)],
        [row(f"fork-{n}", {"threads": n}, variants={}, skipped="no") for n in (1, 2, 3)],
        [row(name, {"threads": number}) for number, name in enumerate(("a", "b", "c"))],
    ],
    ids=["two", "nothing differs", "not run", "names say nothing"],
)
def test_what_is_no_axis_makes_no_curve(rows: list[RowResult]) -> None:
    assert sweeps(rows) == ()


def test_a_curve_has_its_band_the_limit_and_the_published_ratio() -> None:
    table = {"id": "there", "ratio": 0.7, "verdict": "agrees"}
    rows = [row(f"fork-{n}k", {"kib": n}, published_table=table) for n in (4, 16, 64)]
    (picture,) = curves(rows)
    assert picture.kind == "sweep-limit-published"
    by_name = {point["name"]: point for point in picture.data["points"] if point["x"] == "4k"}
    assert (by_name["before"]["y"], by_name["before"]["low"]) == (10, None)
    assert (by_name["ream"]["y"], by_name["ream"]["low"], by_name["ream"]["high"]) == (5, 4, 6)
    assert [point["y"] for point in picture.data["limit"]] == [5, 5, 5]
    assert [point["y"] for point in picture.data["there"]] == [7, 7, 7]
    assert "ream 4k 5" in picture.alt


def test_a_technique_that_was_not_compared_is_no_point_of_a_curve() -> None:
    table = {"id": "there", "ratio": 0.7, "verdict": "not-run"}
    rows = [row(f"fork-{n}k", {"kib": n}, published_table=table) for n in (4, 16, 64)]
    (picture,) = curves(rows)
    assert (picture.kind, set(picture.data)) == ("sweep-limit", {"points", "limit"})


def test_what_nothing_is_known_of_is_no_layer_of_a_curve() -> None:
    unlimited = {"before": result(1), "ream": result(0.5, low=0.4, high=0.6, effect="faster")}
    rows = [row(f"fork-{n}k", {"kib": n}, variants=unlimited) for n in (4, 16, 64)]
    (picture,) = curves(rows)
    assert (picture.kind, set(picture.data)) == ("sweep", {"points"})
    assert picture.kind in kinds()


def test_a_given_series_is_drawn_against_the_tree_that_it_stands_on() -> None:
    own = result(0.9, low=0.8, high=1.1, compared_with="base")
    its = row("fork-4k", {}, variants={"before": result(1), "base": result(0.5), "mine": own})
    assert ends_of(its, own) == (4, 5.5)


def test_rows_not_run_for_one_reason_are_one_line_with_its_numbers() -> None:
    rows = [
        row(f"{n}-threads", {"threads": n}, variants={}, skipped=f"{n} threads on 2 CPUs")
        for n in (3, 4, 8, 52)
    ]
    ran = row("1-thread", {"threads": 1})
    other = row("huge", {}, variants={}, skipped="64 GiB are not there")
    folded = not_run([ran, *rows, other])
    assert [str(one) for one in folded] == [
        "3-threads to 52-threads (4 rows): 3 to 52 threads on 2 CPUs",
        "huge: 64 GiB are not there",
    ]
    assert str(NotRun(("a", "b"), "no")) == "a, b: no"
