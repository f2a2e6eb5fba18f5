# SPDX-License-Identifier: GPL-2.0-only
"""A kit runs where there is nothing but a shell, and its result becomes an ordinary record."""

import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Ream
from in_process import answer
from ream.kit.contents import SUMS
from ream.paths import CHECKOUT

USAGE, CANNOT, WRONG, FAILED, INTERRUPTED = 2, 3, 5, 6, 130
TOOLS = (
    *("sh", "sha256sum", "tar", "gzip", "sed", "grep", "cut", "cat", "find", "mkdir", "mktemp"),
    *("rm", "mv", "date", "dirname", "uname"),
)
"""All programs of the machine that a kit may use."""


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bin")
    for tool in TOOLS:
        path = shutil.which(tool)
        assert path is not None
        (folder / tool).symlink_to(path)
    return folder


def made(folder: Path, *words: str) -> Path:
    """A kit of the smallest experiment, unpacked."""
    file = folder / "kit.tar.gz"
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT / "lab"), "NO_COLOR": "1"}
    said = answer(
        ("kit", str(file), "--experiment", "null", "--seed", "1", *words),
        here=folder,
        environment=environment,
        fed="",
    )
    assert said.code == 0, said.err
    with tarfile.open(file) as archive:
        archive.extractall(folder, filter="data")
    (kit,) = folder.glob("ream-kit-*")
    return kit


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("kit"), "--launches", "2", "--rounds", "2")


def run_kit(kit: Path, tools: Path, here: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [tools / "sh", kit / "run.sh", *words],
        env={"PATH": str(tools), "TMPDIR": str(here)},
        cwd=here,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def result(kit: Path, tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("there")
    said = run_kit(kit, tools, here)
    assert said.returncode == 0, said.stderr
    assert [path.name for path in here.iterdir()] == [f"{kit.name}.result"], "nothing else stays"
    return here / f"{kit.name}.result"


def changed(result: Path, to: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """A result of other files, whose sums are right."""
    with tarfile.open(result) as archive:
        files = {
            entry.name: content.read()
            for entry in archive
            if (content := archive.extractfile(entry)) is not None
        }
    sums = files.pop(f"result/{SUMS}")
    assert sums
    change(files)
    files[f"result/{SUMS}"] = "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name.replace('result/', './', 1)}\n"
        for name, content in files.items()
    ).encode()
    with tarfile.open(to, "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return to


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere/kit.tar.gz", "--experiment", "null"], "there is no directory nowhere"),
        (["kit.tar.gz", "--experiment", "quux"], "no experiment 'quux'"),
        (["kit.tar.gz", "--experiment", "mm"], "it has no programs that a kit could hold"),
        (["kit.tar.gz", "--row", "empty"], "name it with --experiment"),
        (["kit.tar.gz", "--experiment", "null", "--memory", "4GB"], "4GB"),
    ],
)
def test_bad_words_are_refused_in_one_line(ream: Ream, words: list[str], said: str) -> None:
    answered = ream("kit", *words)
    assert (answered.code, answered.out) == (USAGE, "")
    assert said in answered.err
    assert len(answered.err.strip().splitlines()) == 1


def test_a_kit_for_an_architecture_that_is_not_hosted_is_refused(ream: Ream) -> None:
    answered = ream("kit", "kit.tar.gz", "--experiment", "null", "--arch", "arm64")
    assert answered.code == CANNOT
    assert "no kernels of it are hosted by null" in answered.err


def test_no_kit_is_made_of_a_series_that_is_wrong(ream: Ream, tmp_path: Path) -> None:
    (patch,) = (CHECKOUT / "experiments" / "null" / "wrong").glob("*.patch")
    answered = ream("kit", "kit.tar.gz", "--experiment", "null", "--series", str(patch))
    assert answered.code == WRONG
    assert "the bitmap differs from the oracle" in answered.err
    assert not (tmp_path / "kit.tar.gz").exists()


def test_a_result_becomes_a_record_that_is_reported_once(
    ream: Ream, result: Path, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    merged = ream("merge", str(result), "--runs", str(runs), "--json")
    assert merged.code == 0, merged.err
    assert {row["row"] for row in json.loads(merged.out)["rows"]} >= {"bits-65536"}
    assert ream("merge", str(result), "--runs", str(runs)).code == 0
    (record,) = runs.iterdir()
    reported = ream("report", str(record), "--json")
    assert reported.code == 0, reported.err
    receipt = json.loads((record / "receipt.json").read_text())
    assert receipt["settings"]["launches"] == 2
    assert receipt["machine"]["nr_usable_cpus"] == len(os.sched_getaffinity(0))
    samples = [json.loads(line) for line in (record / "samples.jsonl").read_text().splitlines()]
    assert all(one["verified"] for one in samples)
    assert {one["launch"] for one in samples} == {0, 1}


@pytest.mark.parametrize(
    "damage", ["nothing in it", "cut short", "another byte", "another archive"]
)
def test_a_damaged_result_is_refused_in_one_line(
    ream: Ream, result: Path, tmp_path: Path, damage: str
) -> None:
    content = bytearray(result.read_bytes())
    if damage == "another byte":
        content[len(content) // 2] ^= 1
    path = tmp_path / "damaged.result"
    path.write_bytes(
        {"nothing in it": b"", "cut short": content[: len(content) // 2]}.get(damage, content)
    )
    if damage == "another archive":
        with tarfile.open(path, "w:gz") as archive:
            archive.add(CHECKOUT / "README.md", "result/README.md")
    said = ream("merge", str(path), "--runs", str(tmp_path / "runs"))
    assert (said.code, said.out) == (USAGE, "")
    assert len(said.err.strip().splitlines()) == 1
    assert "damaged.result" in said.err
    assert not (tmp_path / "runs").exists()


def test_another_program_than_the_kits_is_noticed(
    ream: Ream, kit: Path, tools: Path, result: Path, tmp_path: Path
) -> None:
    copy = tmp_path / kit.name
    shutil.copytree(kit, copy)
    (copy / "l" / "null.0" / "runner").write_bytes(b"#!/bin/sh\n")
    said = run_kit(copy, tools, tmp_path)
    assert said.returncode == USAGE
    assert "the kit is damaged: l/null.0/runner" in said.stderr

    def another(files: dict[str, bytes]) -> None:
        files["result/said/null.1.sha256"] = b"0" * 64 + b"\n"

    forged = changed(result, tmp_path / "forged.result", another)
    answered = ream("merge", str(forged), "--runs", str(tmp_path / "runs"))
    assert answered.code == FAILED
    assert "null.1: the program that ran is 000000000000" in answered.err
    assert not [*(tmp_path / "runs").glob("*")]


def test_wrong_memory_there_leaves_no_record_here(ream: Ream, result: Path, tmp_path: Path) -> None:
    def wrong(files: dict[str, bytes]) -> None:
        lines = files["result/said/null.1.jsonl"].splitlines(keepends=True)
        told = b'{"wrong": true, "row": "bits-65536", "subject": "same"}\n'
        files["result/said/null.1.jsonl"] = b"".join((*lines[:2], told))
        files["result/said/null.1.err"] = b"bits-65536: same: memory differs from the oracle\n"
        files["result/said/null.1.code"] = b"5\n"

    path = changed(result, tmp_path / "wrong.result", wrong)
    said = ream("merge", str(path), "--runs", str(tmp_path / "runs"))
    assert said.code == WRONG
    assert "memory differs from the oracle" in said.err
    assert not [*(tmp_path / "runs").glob("*")]


def test_a_launch_that_failed_leaves_nothing_to_go_on_with(
    ream: Ream, result: Path, tmp_path: Path
) -> None:
    def failed(files: dict[str, bytes]) -> None:
        files["result/said/null.1.code"] = b"137\n"

    path = changed(result, tmp_path / "failed.result", failed)
    said = ream("merge", str(path), "--runs", str(tmp_path / "runs"))
    assert said.code == FAILED
    assert "launch 1: the native runner ended with 137" in said.err
    assert "--resume" not in said.err
    assert not [*(tmp_path / "runs").glob("*")]


def test_no_code_is_run_that_a_result_names(ream: Ream, result: Path, tmp_path: Path) -> None:
    def elsewhere(files: dict[str, bytes]) -> None:
        its = json.loads(files["result/kit.json"])
        its["experiments"][0]["plan"]["experiment_folder"] = str(tmp_path)
        text = json.dumps(its).encode()
        files["result/kit.json"] = text
        old = files["result/run"].decode().split("kit=", 1)[1].partition("\n")[0]
        now = f"ream-kit-{hashlib.sha256(text).hexdigest()[:12]}"
        files["result/run"] = files["result/run"].replace(old.encode(), now.encode())

    path = changed(result, tmp_path / "elsewhere.result", elsewhere)
    said = ream("merge", str(path), "--runs", str(tmp_path / "runs"))
    assert said.code != 0
    assert "kits are of this checkout's experiments" in said.err
    assert not [*(tmp_path / "runs").glob("*")]


def test_a_launch_that_did_not_run_is_told(ream: Ream, result: Path, tmp_path: Path) -> None:
    def without(files: dict[str, bytes]) -> None:
        for name in [name for name in files if "/null.1." in name]:
            del files[name]

    path = changed(result, tmp_path / "short.result", without)
    runs = tmp_path / "runs"
    assert ream("merge", str(path), "--runs", str(runs)).code == 0
    (record,) = runs.iterdir()
    warnings = json.loads((record / "receipt.json").read_text())["warnings"]
    assert "null: 1 of 2 launches ran in the kit's minutes" in warnings


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("kit.env", "KIT=a\nARCH=riscv64\nMINUTES=1\n"), "the programs are for riscv64"),
        (("memory", "1 99999999\n"), "99999999 MiB of memory are needed"),
        (("memory", "9999 1\n"), "CPUs are too few"),
    ],
)
def test_a_machine_that_cannot_is_told_why(
    kit: Path, tools: Path, tmp_path: Path, change: tuple[str, str], why: str
) -> None:
    (file, text), copy = change, tmp_path / kit.name
    shutil.copytree(kit, copy)
    (copy / file).write_text(text)
    sums = [
        line for line in (copy / SUMS).read_text().splitlines() if not line.endswith(f" {file}")
    ]
    sums.append(f"{hashlib.sha256(text.encode()).hexdigest()}  {file}")
    (copy / SUMS).write_text("\n".join(sums) + "\n")
    said = run_kit(copy, tools, tmp_path)
    assert said.returncode == CANNOT
    assert why in said.stderr.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == [kit.name]


def test_an_interrupted_kit_leaves_nothing_behind(tools: Path, tmp_path: Path) -> None:
    place, here = tmp_path / "made", tmp_path / "here"
    place.mkdir()
    here.mkdir()
    long = made(place, "--row", "bits-33554432", "--launches", "1", "--rounds", "900")
    with subprocess.Popen(
        [tools / "sh", long / "run.sh"],
        env={"PATH": str(tools), "TMPDIR": str(here)},
        cwd=here,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "launch 1 of 1" in line:
                break
        assert [*here.iterdir()]
        process.send_signal(signal.SIGINT)
        left = process.stderr.read()
    assert process.returncode == INTERRUPTED
    assert "nothing is left behind" in left
    assert not [*here.iterdir()]
