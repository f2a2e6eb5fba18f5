# SPDX-License-Identifier: GPL-2.0-only
"""The pages of a site: the records' own numbers, links that lead somewhere, nothing that runs."""

import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ream.errors import BadUsage
from ream.history.pooled import pooled, ratios_in
from ream.site.gathered import Effect, Gathered, MeasuredRow, means
from ream.site.pages import nr_pages, pages
from shipped import RECORDS, unpacked

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
        shutil.copytree(RECORDS / name, folder / name)
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
    assert len(its) <= nr_pages(gathered(runs), of_runs=True)


def test_the_same_records_give_the_same_bytes(runs: Path, made: Mapping[str, str]) -> None:
    assert dict(pages(gathered(runs), of_runs=False)) == made


def test_upgrades_go_from_an_older_kernel_to_newer_ones(runs: Path) -> None:
    its = gathered(runs).upgrades
    assert {tuple(one.by_kernel) for one in its} == {("6.12", "7.2", "7.3")}
    assert {one.by_kernel["7.3"].runs for one in its} == {(KERNELS,)}


@pytest.mark.parametrize(
    ("ends", "word"),
    [((0.8, 0.99), "faster"), ((1.01, 1.2), "slower"), ((0.9, 1.1), "undecided")],
)
def test_a_ratio_is_coloured_only_if_its_interval_is_on_one_side(
    ends: tuple[float, float], word: str
) -> None:
    assert Effect(1.0, *ends, ("run",)).word == word


def test_a_mean_is_geometric_and_of_technique_and_ours_alone() -> None:
    rows = [
        MeasuredRow("a", "ours", {"cpu": Effect(0.5, 0.4, 0.6, ("run",))}),
        MeasuredRow("b", "ours", {"cpu": Effect(2.0, 1.9, 2.1, ("run",))}),
        MeasuredRow("b", "base", {"cpu": Effect(9.0, 8.9, 9.1, ("run",))}),
    ]
    assert means(rows, "cpu") == {"ours": pytest.approx(1.0)}
    assert means(rows, "other") == {}


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


def test_without_records_nothing_is_written(ream: Ream, tmp_path: Path) -> None:
    said = ream("site", str(tmp_path / "site"), "--runs", str(tmp_path / "none"))
    assert said.code == BadUsage.exit_code
    assert "no records; `ream run` makes one" in said.err
    assert not (tmp_path / "site").exists()
