# SPDX-License-Identifier: GPL-2.0-only
"""The page of a record as a browser shows it: its plots, its parts, and its accessibility."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from page_world import ALL_DRAWN, CONTRAST, CUT, OVERLAPS, WIDE, draw_all
from ream.record.packed import content_of, lines_of
from shipped import RECORDS, unpacked

# Each process that has these tests starts a browser.
NAMES = {"published": "technique", "ream": "ours"}
"""What readers see, by the names of records."""

pytestmark = pytest.mark.xdist_group("browser")

Opened = Callable[..., Page]

FORK = "20261128T232136Z-fork-native-011d"
ZONE_DEVICE = "20261122T181226Z-zone-device-native-007a"
COMPACT = "20261121T192328Z-compact-vm-54e8"
PER_PATCH = "20261121T100752Z-fork-native-fd90"
LIVE = "20261121T195445Z-compact-live-0d61"
DEFERRED = "20261121T134155Z-deferred-init-vm-843b"
MIGRATE = "20261121T163113Z-migrate-vm-d6d6"


def of_releases(*records: str) -> list[Any]:
    """Records whose pages are opened before a release; `make test` opens one of each kind."""
    return [pytest.param(record, marks=pytest.mark.vm) for record in records]


HOSTILE = (
    '</script><script>window.pwned = 1</script><img src=x onerror="window.pwned = 2">\'{{7*7}}'
)

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


def points(page: Page, plot: str) -> list[Mapping[str, Any]]:
    """What Vega has in a plot, without what it adds of its own."""
    of_vega = "points => points.map(point => ({...point}))"
    found: list[dict[str, Any]] = page.evaluate(
        f"plot => ({of_vega})(window.reamViews[plot].data('points'))", plot
    )
    return found


def run_of(record: str) -> Mapping[str, Any]:
    value: Mapping[str, Any] = json.loads(content_of(RECORDS / record / "run.json"))
    return value


def samples_of(record: str) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in lines_of(RECORDS / record / "samples.jsonl")]


@pytest.fixture
def altered(tmp_path: Path) -> Callable[..., Path]:
    """A copy of a record with another run.json, or with moments."""

    def alter(
        record: str, change: Callable[[Any], None] | None = None, noise: str | None = None
    ) -> Path:
        copy = unpacked(RECORDS / record, tmp_path / "altered" / record, change or (lambda _: None))
        if noise is not None:
            (copy / "noise.jsonl").write_text(noise)
        return copy

    return alter


# --- Plots -------------------------------------------------------------------------------


@pytest.mark.parametrize("record", [ZONE_DEVICE, *of_releases(COMPACT, DEFERRED)])
def test_the_plots_of_ratios_have_exactly_the_ratios_of_the_record(
    drawn: Opened, record: str
) -> None:
    page = drawn(record)
    for number, row in enumerate(run_of(record)["rows"], start=1):
        if not row["variants"]:
            assert page.locator(f"#row-{number}-ratio").count() == 0
            continue
        shown = {
            point["name"]: (point["ratio"], point["low"], point["high"])
            for point in points(page, f"row-{number}-ratio")
        }
        assert shown == {
            NAMES.get(name, name): (its["ratio"], its["low"], its["high"])
            for name, its in row["variants"].items()
            if name != "before"
        }


def test_every_point_is_drawn_and_stands_where_its_scale_says(drawn: Opened) -> None:
    page = drawn(ZONE_DEVICE)
    for plot in page.locator(".plot").evaluate_all("plots => plots.map(plot => plot.id)"):
        if plot.endswith(("-value", "-share")):
            continue  # bars, not points
        drawn = page.locator(f"#{plot} g.role-mark.mark-symbol path").count()
        assert drawn == len(points(page, plot)), plot
    places = page.locator("#row-1-ratio g.role-mark.mark-symbol path").evaluate_all(
        "paths => paths.map(path => path.transform.baseVal[0].matrix.e)"
    )
    ratios = [point["ratio"] for point in points(page, "row-1-ratio")]
    scaled = page.evaluate(
        "ratios => ratios.map(window.reamViews['row-1-ratio'].scale('x'))", ratios
    )
    assert places == pytest.approx(scaled, abs=0.01)


@pytest.mark.parametrize("record", [ZONE_DEVICE, LIVE])
def test_the_plots_of_samples_have_every_sample_in_its_order(drawn: Opened, record: str) -> None:
    page = drawn(record)
    taken = [one for one in samples_of(record) if one["role"] == "variant"]
    for number, row in enumerate(run_of(record)["rows"], start=1):
        its = [one for one in taken if one["row"] == row["row"]]
        shown = sorted(points(page, f"row-{number}-drift-1"), key=lambda point: point["n"])
        assert [(point["name"], point["launch"], point["round"]) for point in shown] == [
            (NAMES.get(one["subject"], one["subject"]), one["launch"], one["round"]) for one in its
        ]
        scale = its[0]["time_ns"] / shown[0]["value"]
        assert [point["value"] * scale for point in shown] == pytest.approx(
            [one["time_ns"] for one in its], rel=1e-5
        )


def test_the_plots_of_values_and_shares_have_those_of_the_record(drawn: Opened) -> None:
    page = drawn(ZONE_DEVICE)
    for number, row in enumerate(run_of(ZONE_DEVICE)["rows"], start=1):
        variants = {NAMES.get(name, name): its for name, its in row["variants"].items()}
        shown = {p["name"]: p["value"] for p in points(page, f"row-{number}-value")}
        scale = variants["before"]["median"] / shown["before"]
        assert {name: shown[name] * scale for name in variants} == pytest.approx(
            {name: its["median"] for name, its in variants.items()}, rel=1e-5
        )
        shares = {p["name"]: p["share"] for p in points(page, f"row-{number}-share")}
        assert shares == {name: its["of_limit"] for name, its in variants.items()}


def test_noise_over_time_has_the_moments_that_can_be_read(
    opened: Opened, altered: Callable[..., Path]
) -> None:
    noise = (
        '{"t_s": 0.0, "load": 1.5, "steal_pct": null, "mhz_low": 1200.0}\n'
        '{"t_s": 2.0, "load": 2.5, "steal_pct": 3.5, "others_pct": 1.0, "more": "text"}\n'
        "no moment\n"
    )
    page = opened(altered(LIVE, noise=noise))
    draw_all(page)
    assert [(p["t_s"], p["value"]) for p in points(page, "noise-load")] == [(0, 1.5), (2, 2.5)]
    assert [(p["name"], p["value"]) for p in points(page, "noise-cpu")] == [
        ("the hypervisor", 3.5),
        ("other programs", 1),
    ]
    assert "1 line of noise.jsonl could not be read" in page.locator("#noise").inner_text()


NUMBERS = """
() => {
  // Vega keeps numbers that it hides, without opacity.
  const seen = (text) => text.textContent && text.getAttribute("opacity") !== "0";
  const faults = [];
  for (const plot of document.querySelectorAll(".plot")) {
    const whole = plot.getBoundingClientRect();
    const texts = [...plot.querySelectorAll("svg text")].filter(seen);
    const boxes = texts.map((text) => text.getBoundingClientRect());
    boxes.forEach((one, place) => {
      const text = texts[place].textContent;
      if (text.includes("…") || one.left < whole.left - 1 || one.right > whole.right + 1 ||
          one.top < whole.top - 3 || one.bottom > whole.bottom + 3)
        faults.push(`${plot.id}: ${text} is cut`);
      for (let next = place + 1; next < boxes.length; next++) {
        const other = boxes[next];
        if (one.left < other.right + 2 && other.left < one.right + 2 &&
            one.top + 3 < other.bottom && other.top + 3 < one.bottom)
          faults.push(`${plot.id}: ${text} is on ${texts[next].textContent}`);
      }
    });
    const axis = /ratio|overview/.test(plot.id) ? "x" : plot.id.includes("drift") ? "y" : null;
    if (!axis) continue;
    const [low, high] = window.reamViews[plot.id].scale(axis).domain();
    for (let ten = Math.ceil(Math.log10(low)); ten <= Math.log10(high); ten++)
      if (!texts.some((text) => Number(text.textContent) === 10 ** ten))
        faults.push(`${plot.id}: no 10^${ten}`);
  }
  return faults;
}
"""


@pytest.mark.parametrize("record", [ZONE_DEVICE, PER_PATCH, *of_releases(COMPACT, MIGRATE)])
@pytest.mark.parametrize("screen", [{"viewport": {"width": 1280, "height": 900}}, PHONE])
def test_names_and_numbers_of_plots_are_whole_and_clear_of_each_other(
    opened: Opened, record: str, screen: Mapping[str, Any]
) -> None:
    page = opened(record, **screen)
    draw_all(page)
    assert page.evaluate(NUMBERS) == []


# --- Accessibility -------------------------------------------------------------------------


@pytest.mark.parametrize("record", [ZONE_DEVICE, COMPACT])
def test_a_phone_never_scrolls_the_page_sideways(opened: Opened, record: str) -> None:
    page = opened(record, **PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.get_by_role("button", name="Open all rows").click()
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    draw_all(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    wide = page.locator(".plot svg").evaluate_all(
        "plots => plots.filter(plot => plot.getBoundingClientRect().right > 360).length"
    )
    assert wide == 0


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("record", [FORK, ZONE_DEVICE, *of_releases(COMPACT, MIGRATE)])
def test_nothing_is_cut_and_on_a_screen_every_table_of_verdicts_fits(
    opened: Opened, record: str, width: int
) -> None:
    page = opened(record, viewport={"width": width, "height": 900})
    assert page.evaluate(CUT) == []
    assert page.evaluate(OVERLAPS) == []
    if width == 1400:
        assert page.evaluate(WIDE) == []
        heights = page.locator(".verdicts tbody tr").evaluate_all(
            "rows => rows.map((row) => row.clientHeight)"
        )
        assert max(heights) < 75


def test_a_gain_and_a_loss_have_colours_of_their_own(drawn: Opened) -> None:
    page = drawn(FORK)
    colour = "(its) => getComputedStyle(its).color"
    its = {name: page.locator(f".verdicts strong.{name}").first for name in ("faster", "slower")}
    assert its["faster"].evaluate(colour) != its["slower"].evaluate(colour)
    assert "slower" in its["slower"].inner_text()


def test_the_first_words_of_a_page_are_a_sentence_with_its_largest_effect(drawn: Opened) -> None:
    first = drawn(FORK).locator("#holds li").first.inner_text()
    effects = {row["row"]: row["variants"]["ream"]["ratio"] for row in run_of(FORK)["rows"]}
    row = min(effects, key=lambda name: effects[name])
    assert first == (
        f"This run has {len(effects)} rows. The largest effect of ours is"
        f" {1 / effects[row]:.2f}x faster, in {row}."
    )


def test_each_table_sorts_and_numbers_with_units_and_intervals_are_numbers(
    opened: Opened,
) -> None:
    page = opened(FORK)
    assert page.locator("table:not(.sortable)").count() == 0
    table = page.locator("table.verdicts")
    table.get_by_role("button", name="ours here").click()
    names = table.locator("tbody th").all_inner_texts()
    ratios = {row["row"]: row["variants"]["ream"]["ratio"] for row in run_of(FORK)["rows"]}
    assert names == sorted(ratios, key=lambda name: ratios[name])
    table.get_by_role("button", name="noise floor").click()
    floors = [float(one.split()[0]) for one in table.locator("td.small").all_inner_texts()]
    assert floors == sorted(floors)


def test_parts_open_and_close_by_keyboard_and_focus_is_seen(opened: Opened) -> None:
    page = opened(ZONE_DEVICE)
    row = page.locator("details.row").first
    summary = row.locator("> summary")
    page.locator("#open-rows").focus()
    page.keyboard.press("Tab")
    assert summary.evaluate("it => it === document.activeElement")
    assert summary.evaluate("it => getComputedStyle(it).outlineStyle") != "none"
    page.keyboard.press("Enter")
    assert row.evaluate("it => it.open")
    page.wait_for_selector("#row-1-ratio[data-drawn=yes]")
    page.keyboard.press("Space")
    assert not row.evaluate("it => it.open")


def test_without_scripts_no_plot_is_promised_and_the_page_says_why(opened: Opened) -> None:
    page = opened(ZONE_DEVICE, java_script_enabled=False)
    assert page.locator("figure:visible").count() == 0
    note = page.locator("noscript p")
    assert note.is_visible()
    top, first = note.bounding_box(), page.locator("main").bounding_box()
    assert top is not None
    assert first is not None
    assert top["y"] < first["y"]


def test_a_link_to_a_row_opens_it(opened: Opened) -> None:
    page = opened(ZONE_DEVICE)
    page.locator("table.verdicts a").nth(2).click()
    page.wait_for_function("() => document.querySelectorAll('details.row')[2].open")


@pytest.mark.parametrize("record", [PER_PATCH, *of_releases(COMPACT)])
def test_paper_shows_what_is_folded_and_the_screen_folds_it_again(
    opened: Opened, record: str
) -> None:
    page = opened(record)
    folded = "() => document.querySelectorAll('details:not([open]):not([data-print])').length"
    before = page.evaluate(folded)
    assert before > 0
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.wait_for_function(f"{folded} === {before}")
    page.emulate_media(media="print")
    page.wait_for_function(f"{folded} === 0")
    page.wait_for_function(ALL_DRAWN)
    page.set_viewport_size({"width": 718, "height": 1047})  # A4 within chromium's margins
    assert page.evaluate("document.documentElement.scrollWidth") <= 718
    assert not page.locator("nav").is_visible()
    assert not page.locator("#open-rows").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


CHECKS = """
() => {
  const faults = [];
  const name = (it) => it.getAttribute("aria-label") ||
    (it.getAttribute("aria-labelledby") &&
      document.getElementById(it.getAttribute("aria-labelledby")).textContent) ||
    it.textContent;
  const all = (selector) => [...document.querySelectorAll(selector)];
  if (!document.documentElement.lang) faults.push("no language");
  for (const one of ["h1", "main", "header", "footer", "nav"])
    if (all(one).length !== 1) faults.push(`${all(one).length} ${one}`);
  let level = 0;
  for (const one of all("h1, h2, h3, h4")) {
    const own = Number(one.tagName[1]);
    if (own > level + 1) faults.push(`${one.textContent} skips a level`);
    level = own;
  }
  const heard = all("a, button, summary, nav, [role], section, pre[tabindex]");
  for (const one of heard.filter((it) => !it.closest("[aria-hidden=true]")))
    if (!name(one).trim()) faults.push(`${one.outerHTML.slice(0, 60)} has no name`);
  for (const one of all("th")) if (!one.scope) faults.push(`${one.textContent} has no scope`);
  for (const one of all("table")) if (!one.caption) faults.push("a table has no caption");
  for (const one of all("figure"))
    if (!one.querySelector("figcaption") || !one.querySelector("[role=img][aria-label]"))
      faults.push("a figure has no words");
  for (const one of all(".scroll"))
    if (one.tabIndex !== 0) faults.push("a box to scroll is out of reach of the keyboard");
  const ids = all("[id]").map((one) => one.id);
  if (new Set(ids).size !== ids.length) faults.push("two parts have one id");
  for (const one of all("a[href^='#']"))
    if (!document.getElementById(one.getAttribute("href").slice(1)))
      faults.push(`${one.href} leads nowhere`);
  return faults;
}
"""


@pytest.mark.parametrize("record", [LIVE, *of_releases(ZONE_DEVICE, COMPACT)])
def test_everything_has_a_name_and_its_place_for_those_who_listen(
    drawn: Opened, record: str
) -> None:
    page = drawn(record)
    assert page.evaluate(CHECKS) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_word_stands_out_from_its_ground(drawn: Opened, scheme: str) -> None:
    page = drawn(ZONE_DEVICE)
    page.emulate_media(color_scheme=scheme)
    found = page.evaluate(CONTRAST)
    page.emulate_media(color_scheme="light")
    assert found["seen"] > 500  # words of plots and of tables
    assert found["faults"] == []


# --- What records say ------------------------------------------------------------------------


def test_what_a_record_says_is_shown_and_never_run(
    opened: Opened, altered: Callable[..., Path]
) -> None:
    def poison(run: Any) -> None:
        run["question"] = run["run"] = HOSTILE
        run["receipt"]["warnings"] = [HOSTILE]
        run["receipt"]["machine"] = HOSTILE
        for row in run["rows"]:
            row["title"] = row["explanation"] = HOSTILE
            row["notes"] = row["remarks"] = [HOSTILE]
        first = run["rows"][0]
        first["row"] = HOSTILE
        first["variants"][HOSTILE] = first["variants"]["ream"]

    page = opened(altered(ZONE_DEVICE, poison))
    draw_all(page)
    assert page.evaluate("() => window.pwned") is None
    assert page.locator("main img").count() == 0
    assert page.locator("details.row h3").first.inner_text() == HOSTILE
    assert HOSTILE in [point["name"] for point in points(page, "row-1-ratio")]


def test_a_run_whose_rows_were_all_skipped_says_so(
    opened: Opened, altered: Callable[..., Path]
) -> None:
    def skip(run: Any) -> None:
        for row in run["rows"]:
            row.update(variants={}, limits=[], limit=None, floor=None, skipped="no memory for it")

    page = opened(altered(ZONE_DEVICE, skip))
    assert "7 of them not run" in page.locator("#holds").inner_text()
    (said,) = [one for one in page.locator("#holds p.note").all_inner_texts() if "Not run" in one]
    assert "(7 rows): no memory for it." in said
    assert page.locator("table.verdicts").count() == 0
