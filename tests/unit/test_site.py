# SPDX-License-Identifier: GPL-2.0-only
"""The pages of a site: the records' own numbers, links that lead somewhere, nothing that runs."""

import html
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ream.errors import BadUsage
from ream.history.pooled import pooled, ratios_in
from ream.record.cpu_names import short_names
from ream.record.packed import content_of
from ream.record.record import SUMMED
from ream.site.gathered import Gathered, Mean, MeasuredRow, Ratio, means
from ream.site.pages import RUNS, pages, trend, work
from shipped import RECORDS, copied, unpacked

Ream = Callable[..., Any]

FORK = "20261128T232136Z-fork-native-011d"
MREMAP = "20261128T232540Z-mremap-native-3e9e"
COUNTED = "20261126T055340Z-mprotect-native-149a"
KERNELS = "20261128T234542Z-fork-native-d653"
OLDER_KERNEL = "20261125T030933Z-fork-native-fbbc"
WITHOUT_SUMS = "20261121T195445Z-compact-live-0d61"
HOSTILE = "<script>alert(1)</script>"


def gathered(runs: Path) -> Gathered:
    return Gathered.of(runs, lambda _number, _of: None)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name in (FORK, MREMAP, COUNTED, KERNELS, OLDER_KERNEL):
        copied(RECORDS / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def made(runs: Path) -> Mapping[str, str]:
    return dict(pages(gathered(runs), of_runs=False))


def test_every_ratio_of_whole_series_stands_on_the_page_of_its_experiment(
    runs: Path, made: Mapping[str, str]
) -> None:
    for (experiment, row, variant), by_cpu in pooled(ratios_in(runs)).items():
        shown = {"published": "technique", "ream": "ours"}.get(variant, variant)
        (line,) = re.findall(
            rf'<tr id="{re.escape(row)}\.{re.escape(shown)}">.*?</tr>', made[f"{experiment}.html"],
            re.DOTALL,
        )  # fmt: skip
        for its in by_cpu.values():
            assert f'data-value="{its.estimate.ratio}"' in line


def test_links_lead_to_pages_and_to_places_in_them(runs: Path) -> None:
    its = dict(pages(gathered(runs), of_runs=True))
    nr_links = 0
    for name, text in its.items():
        if not name.endswith(".html") or name.startswith("runs/"):
            continue
        for link in re.findall(r'(?:href|src)="([^"]+)"', text):
            if link.startswith("https:"):
                continue
            page, _, place = link.partition("#")
            target = its[page or name]
            assert not place or f'id="{place}"' in target, (name, link)
            nr_links += 1
    assert nr_links > 50


def test_the_same_records_give_the_same_bytes(runs: Path, made: Mapping[str, str]) -> None:
    assert dict(pages(gathered(runs), of_runs=False)) == made


def test_upgrades_go_from_an_older_kernel_to_newer_ones(runs: Path) -> None:
    its = gathered(runs).upgrades
    assert {tuple(one.by_kernel) for one in its} == {("6.12", "7.2", "7.3")}
    assert {ratio.runs for one in its if (ratio := one.by_kernel["7.3"])} == {(KERNELS,)}


def test_a_cell_has_the_word_of_its_run(runs: Path) -> None:
    its = gathered(runs)
    for experiment in ("fork", "mremap"):
        by_run = {one.run: one for _, one in its.records}
        for row in its.rows(experiment):
            for ratio in row.by_cpu.values():
                (run,) = ratio.runs
                (kept,) = (one for one in by_run[run].rows if one.row == row.row)
                name = {"technique": "published", "ours": "ream"}.get(row.variant, row.variant)
                effect = kept.variants[name].effect
                assert ratio.word == (effect if effect in ("faster", "slower") else "undecided")


def test_a_page_takes_as_much_of_the_estimate_as_its_run_has_rows(runs: Path) -> None:
    its = gathered(runs)
    weights = work(its, of_runs=True)
    names = [name for name, _ in pages(its, of_runs=True)]
    assert weights.keys() <= {*names}
    rows = {one.run: len(one.rows) for _, one in its.records}
    assert weights[f"runs/{FORK}.html"] - weights[f"runs/{MREMAP}.html"] == (
        rows[FORK] - rows[MREMAP]
    )
    assert not any(name.startswith("runs/") for name in work(its, of_runs=False))


CLAIMED = re.compile(
    r'<tr><th scope="row">([^<]*)</th>\s*<td data-value="([\d.e-]+)">([^<]*)</td>'
    r'\s*<td data-value="([\d.e-]*)" title="[^"]*">([^<]*)<small class="([\w-]+)">'
)


def test_published_tables_have_the_numbers_of_their_records(
    runs: Path, made: Mapping[str, str]
) -> None:
    """Each line of the page against run.json, which this test reads itself."""
    there: dict[tuple[str, str], set[tuple[float, float, str]]] = {}
    for name in (FORK, MREMAP):
        for row in json.loads(content_of(runs / name / "run.json"))["rows"]:
            for its in row["published_tables"] or filter(None, [row["published_table"]]):
                whole = (row["whole"] or {}).get("ratio") or row["variants"]["published"]
                line = ", ".join(f"{key} {value}" for key, value in its["params"].items())
                found = its["ratio"], whole["ratio"], its["verdict"]
                there.setdefault((its["id"], line), set()).add(found)
    nr_found = 0
    for section in made["published.html"].split("<h2 id=")[1:]:
        table = section.split('"')[1]
        for line, claimed, words, here, said, verdict in CLAIMED.findall(section):
            if verdict == "not-run":
                continue
            rows = there[table, html.unescape(line)]
            found = float(claimed), float(here)
            (own,) = (one for one in rows if one[:2] == pytest.approx(found, rel=1e-4))
            assert verdict == own[2]
            for text, ratio in ((words, own[0]), (said, own[1])):
                assert text == (
                    f"{1 / ratio:.2f}x faster" if ratio <= 1 else f"{ratio:.2f}x slower"
                )
            nr_found += 1
    assert nr_found > 10


def test_an_experiment_without_runs_has_no_page_and_no_row(made: Mapping[str, str]) -> None:
    assert "null.html" not in made
    assert 'id="fork"' in made["index.html"]
    assert 'id="null"' not in made["index.html"]


def test_a_trend_goes_up_where_a_kernel_is_slower_and_stays_inside() -> None:
    def ends(*ratios: float) -> list[float]:
        (line,) = re.findall(r'points="([^"]*)"', trend(ratios))
        return [float(one.split(",")[1]) for one in line.split()]

    first, slower, faster = ends(1.0, 1.4, 0.7)
    assert slower < first < faster
    assert ends(1.0, 50.0) == ends(1.0, 2.0)
    assert min(ends(1.0, 50.0)) > 0
    with pytest.raises(ValueError, match="two"):
        trend([1.0])


def test_types_of_cpu_have_short_names_and_no_two_the_same() -> None:
    intel = "Intel(R) Xeon(R) Processor (family 6 model {})"
    amd = "AMD EPYC (family {} model {})"
    its = [intel.format(167), intel.format(207), amd.format(25, 1), amd.format(25, 17), "ARM"]
    assert [*short_names(its).values()] == [
        "Intel Xeon model 167", "Intel Xeon model 207", "Zen 3", "Zen 4", "ARM",
    ]  # fmt: skip
    assert [*short_names([intel.format(167)]).values()] == ["Intel Xeon"]
    assert [*short_names([amd.format(23, 49), amd.format(99, 1)]).values()] == ["Zen 2", "AMD EPYC"]


def test_a_mean_has_the_colour_of_what_it_rounds_to() -> None:
    words = [Mean(one, earlier=False).word for one in (0.5, 0.997, 1.003, 1.2)]
    assert words == ["faster", "equal", "equal", "slower"]


def ratio(value: float, *, earlier: bool = False) -> Ratio:
    return Ratio(value, value, value, ("run",), "faster", earlier)


def test_a_mean_is_of_the_rows_that_every_type_of_cpu_has() -> None:
    rows = [
        MeasuredRow("a", "ours", {"x": ratio(0.5), "y": ratio(0.4)}),
        MeasuredRow("b", "ours", {"x": ratio(2.0), "y": ratio(0.9, earlier=True)}),
        MeasuredRow("c", "ours", {"x": ratio(7.0)}),
        MeasuredRow("b", "base", {"x": ratio(9.0), "y": ratio(9.0), "z": ratio(9.0)}),
    ]
    nr_rows, found = means(rows)
    assert nr_rows == 2
    assert found["x"] == {"ours": Mean(pytest.approx(1.0), earlier=False)}
    assert found["y"] == {"ours": Mean(pytest.approx(0.6), earlier=True)}
    assert found.keys() == {"x", "y"}


def test_published_tables_are_judged_by_one_machine_at_a_time(tmp_path: Path) -> None:
    copied(RECORDS / FORK, tmp_path / FORK)
    copy = unpacked(RECORDS / FORK, tmp_path / "20261129T000000Z-fork-native-0001")
    receipt = json.loads((copy / "receipt.json").read_text())
    receipt.pop(SUMMED, None)
    receipt["machine"].update(id="another", nr_cpus=64)
    (copy / "receipt.json").write_text(json.dumps(receipt))
    (copy / "SHA256SUMS").unlink(missing_ok=True)
    its = gathered(tmp_path)
    assert len(its.cpus) == 1
    assert [one.rpartition(", ")[2] for one in its.machines] == ["machine 1", "machine 2"]


def test_a_record_that_is_no_result_is_refused_in_one_line(tmp_path: Path) -> None:
    unpacked(RECORDS / WITHOUT_SUMS, tmp_path / WITHOUT_SUMS, lambda run: run.update(rows=[{}]))
    with pytest.raises(BadUsage, match="rows"):
        gathered(tmp_path)


def test_texts_of_a_record_are_not_run(tmp_path: Path) -> None:
    def change(run: Any) -> None:
        run["run"] = f"../{HOSTILE}"
        run["experiment"] = f"../{HOSTILE}"

    unpacked(RECORDS / WITHOUT_SUMS, tmp_path / WITHOUT_SUMS, change)
    its = dict(pages(gathered(tmp_path), of_runs=False))
    assert "&lt;script&gt;alert(1)" in its["runs.html"]
    assert not any(HOSTILE in text for text in its.values())
    assert not any(".." in name for name in its)


def test_a_folder_that_has_files_is_left_alone(ream: Ream, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = ream("site", str(tmp_path), "--runs", str(RECORDS))
    assert said.code == BadUsage.exit_code
    assert said.err == f"ream: {tmp_path}: has files; --force writes among them\n"
    assert [*tmp_path.iterdir()] == [tmp_path / "file"]


@pytest.mark.parametrize("name", ["runs", "index.html"])
def test_force_writes_nothing_through_a_link(ream: Ream, tmp_path: Path, name: str) -> None:
    runs, site, outside = (tmp_path / one for one in ("records", "site", "outside"))
    copied(RECORDS / MREMAP, runs / MREMAP)
    site.mkdir()
    (outside / "here").mkdir(parents=True)
    (outside / "page").write_text("kept")
    (site / name).symlink_to(outside / ("here" if name == RUNS else "page"))
    said = ream("site", str(site), "--force", "--runs", str(runs))
    assert said.code == BadUsage.exit_code
    assert said.err.endswith(f"{site / name}: is a link, and pages are written into {site} alone\n")
    assert (outside / "page").read_text() == "kept"
    assert not any((outside / "here").iterdir())


def test_without_records_nothing_is_written(ream: Ream, tmp_path: Path) -> None:
    said = ream("site", str(tmp_path / "site"), "--runs", str(tmp_path / "none"))
    assert said.code == BadUsage.exit_code
    assert "no records; `ream run` makes one" in said.err
    assert not (tmp_path / "site").exists()
