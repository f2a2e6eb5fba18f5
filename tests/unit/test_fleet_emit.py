# SPDX-License-Identifier: GPL-2.0-only
"""What a plan is emitted as: files that other programs accept, whatever the paths are called."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from ream.errors import BadUsage
from ream.experiment import named
from ream.fleet.cell import Cell, read_cells
from ream.fleet.emit import Assignment, Form, again, emit, parse_hosts, title, write
from ream.fleet.plan import Wish, plan_cells

FORMS: tuple[Form, ...] = ("jsonl", "parallel", "sbatch")


@pytest.fixture(scope="module")
def cells() -> tuple[Cell, ...]:
    whole = named("zone-device")
    return plan_cells(Wish((whole,), rows=("small-256MB",), seed=3, repeat=3))


@pytest.fixture(scope="module")
def layouts(cells: tuple[Cell, ...]) -> Mapping[str, Assignment]:
    plain = Assignment(cells=cells, ream="~/my tools/it's ream")
    hosts = replace(plain, hosts=("alpha", "root@beta:2222"))
    return {"here": plain, "any": hosts, "each": replace(hosts, each=True)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["here", "any", "each"])
def test_every_form_has_the_cells_and_the_same_plan_the_same_bytes(
    form: Form, name: str, layouts: Mapping[str, Assignment], tmp_path: Path
) -> None:
    files = emit(form, layouts[name])
    assert files == emit(form, layouts[name])
    write(files, tmp_path / "plan")
    assert read_cells(tmp_path / "plan/cells.jsonl") == layouts[name].cells
    for text in files.values():
        assert text.endswith("\n")
        assert all(len(line) <= 100 for line in text.splitlines() if not line.startswith("{"))


@pytest.mark.parametrize("form", ["parallel", "sbatch"])
@pytest.mark.parametrize("name", ["here", "any", "each"])
def test_every_script_obeys_shellcheck(
    form: Form, name: str, layouts: Mapping[str, Assignment], tmp_path: Path
) -> None:
    if shutil.which("shellcheck") is None:
        reason = "shellcheck: not installed; `make setup` as root installs it"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    write(emit(form, layouts[name]), tmp_path / "plan")
    scripts = [path for path in (tmp_path / "plan").glob("run*") if path.is_file()]
    assert {path.name for path in scripts} == {
        "parallel": {"run-cell.sh", "run.sh"},
        "sbatch": {"run-cell.sh", "run.sbatch"},
    }[form]
    judged = subprocess.run(
        ("shellcheck", *map(str, scripts)), capture_output=True, text=True, check=False
    )
    assert judged.returncode == 0, judged.stdout


def test_the_script_of_a_host_finds_ream_and_cell_whatever_their_paths(
    layouts: Mapping[str, Assignment], tmp_path: Path
) -> None:
    directory, home = tmp_path / "a plan", tmp_path / "a home"
    write(emit("parallel", layouts["here"]), directory)
    tool = home / "my tools/it's ream"
    tool.parent.mkdir(parents=True)
    tool.write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    tool.chmod(0o755)
    one = layouts["here"].cells[0].id
    ran = subprocess.run(
        ("sh", str(directory / "run-cell.sh"), one),
        env={**os.environ, "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout == f"<run><--cell><cells/{one}.json><--output><records/{one}>"
    assert (directory / f"records/{one}").is_dir()


def test_each_script_begins_with_how_to_run_rerun_and_merge(
    layouts: Mapping[str, Assignment],
) -> None:
    for form, name in (("parallel", "run.sh"), ("sbatch", "run.sbatch")):
        head = emit(form, layouts["any"])[name].partition("\n\n")[0]  # type: ignore[arg-type]
        assert all(line.startswith("#") for line in head.splitlines())
        for words in (" all ", " rerun", "merge", "--plan cells.jsonl"):
            assert words in head, name


def test_the_script_says_on_which_hosts_a_cell_is_done(layouts: Mapping[str, Assignment]) -> None:
    heads = {name: emit("parallel", layout)["run.sh"] for name, layout in layouts.items()}
    assert ", each on one of 2 hosts." in heads["any"]
    assert ", each on every one of 2 hosts." in heads["each"]
    assert ", each on " not in heads["here"]


def test_a_host_does_one_cell_at_a_time(layouts: Mapping[str, Assignment]) -> None:
    for name in ("here", "any", "each"):
        assert "parallel --jobs 1 " in emit("parallel", layouts[name])["run.sh"]
    assert "#SBATCH --exclusive" in emit("sbatch", layouts["here"])["run.sbatch"].splitlines()


def test_what_is_missing_is_done_by_one_command_of_the_same_form(
    layouts: Mapping[str, Assignment], tmp_path: Path
) -> None:
    ids = [cell.id for cell in layouts["here"].cells]
    two = [ids[0], ids[2]]
    said = {}
    for form in FORMS:
        directory = tmp_path / f"a {form}"
        write(emit(form, layouts["here"]), directory)
        said[form] = again(directory, two, ids).replace(str(tmp_path), "T")
    assert said == {
        "jsonl": "",
        "parallel": f"sh 'T/a parallel/run.sh' {ids[0]} {ids[2]}",
        "sbatch": "(cd 'T/a sbatch' && sbatch --array=1,3 run.sbatch)",
    }


def test_a_directory_that_holds_something_is_left_alone(
    layouts: Mapping[str, Assignment], tmp_path: Path
) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(BadUsage, match="not empty"):
        write(emit("jsonl", layouts["here"]), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    with pytest.raises(BadUsage, match=r"mine: cannot be written: File exists"):
        write(emit("jsonl", layouts["here"]), tmp_path / "mine")


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("a,b", ("a", "b")),
        (" a , admin@b.example.org:2222 ", ("a", "admin@b.example.org:2222")),
        ("10.0.0.1", ("10.0.0.1",)),
    ],
)
def test_hosts_are_a_list(text: str, hosts: tuple[str, ...]) -> None:
    assert parse_hosts(text) == hosts


def test_a_list_of_hosts_may_be_longer_than_a_path() -> None:
    hosts = tuple(f"host{number:04}.example.org" for number in range(400))
    assert parse_hosts(",".join(hosts)) == hosts


def test_hosts_are_a_file(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("# mine\nalpha\n\nadmin@beta  # the fast one\n")
    assert parse_hosts(str(tmp_path / "hosts")) == ("alpha", "admin@beta")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("-oProxyCommand=x", "'-oProxyCommand=x' is neither"),
        ("a,b c", "'b c' is neither"),
        ("a;reboot", "'a;reboot' is neither"),
        ("ssh://a", "is neither"),
        ("a@b@c", "is neither"),
        ("2/a", "is neither"),
        (",", "no host in ','"),
        ("a,b,a", "a twice"),
    ],
)
def test_what_is_no_host_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadUsage) as refused:
        parse_hosts(text)
    assert str(refused.value).startswith("--hosts: ")
    assert said in str(refused.value)


def test_a_title_says_row_and_repetition(cells: tuple[Cell, ...]) -> None:
    assert [title(cell) for cell in cells[:2]] == [
        "zone-device native small-256MB",
        "zone-device native small-256MB, repetition 2",
    ]
    assert json.loads(cells[0].to_line())["id"] == cells[0].id
