# SPDX-License-Identifier: GPL-2.0-only
"""Bad input gets one clear line and the right exit code, never a trace, and leaves nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ream.cli.main import _say
from ream.folders import file_of
from ream.paths import CHECKOUT

USAGE = 2
CANNOT_RUN = 3
BROKEN_PIPE = 141


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["run", "quux"],
            (
                "no experiment 'quux'; there is compact, deferred-init, fork, migrate, mm,"
                " mprotect, mremap, null, zone-contiguous, zone-device, or give a folder or a .toml"
                " file"
            ),
        ),
        (["run", "zone-devise"], "no experiment 'zone-devise' (did you mean zone-device?); there"),
        (["run", "nowhere.toml"], "nowhere.toml: No such file or directory"),
        (
            ["run", "--row", "small-256MB", "--set", "device_bytes=0"],
            "must be greater than 0",
        ),
        (
            ["run", "--row", "small-256MB", "--set", "device_bytes=200MiB"],
            "not a whole number of sections of 128 MiB",
        ),
        (["run", "--row", "small-256MB", "--set", "device_bytes=many"], "not a size"),
        (["run", "--row", "small-256MB", "--set", "order=19"], "order"),
        (["replicate", "--all", "--record", "last", "-o", "here"], "--runs names where it is"),
        (["replicate", "--all", "--runs", "here"], "it is for --record"),
        (["run", "--row", "small-256MB", "--set", "type=RAM"], "type"),
        (["run", "--row", "small-256MB", "--set", "order=18"], "another size, or order 0 to 16"),
        (
            ["run", "--row", "small-256MB", "--set", "type=PRIVATE", "--set", "altmap=true"],
            "types FS_DAX and GENERIC",
        ),
        (
            [
                "run",
                "--row",
                "small-256MB",
                "--set",
                "device_bytes=1GiB",
                "--set",
                "order=18",
                "--set",
                "altmap=true",
            ],
            "the map takes the whole device",
        ),
        (["run", "--row", "quux"], "zone-device has no row quux; it has fsdax-100GB"),
        (["run", "--rounds", "0"], "rounds: must be between 1 and"),
        (["run", "--launches", "-1"], "launches: must be between 1 and"),
        (["run", "--series", "nowhere.patch"], "nowhere.patch"),
        (["run", "--tree", "nowhere"], "nowhere"),
        (["run", "--cpus", "2"], "need --stage vm"),
        (["run", "--stage", "vm", "--control", "3%"], "the native stage alone can slow"),
        (["run", "--stage", "vm", "--threads", "2"], "--cpus gives a guest its CPUs"),
        (["run", "--stage", "vm", "--accel", "tcg", "-m", "2GiB"], "cannot hold fsdax"),
        (["run", "fork", "--stage", "vm", "--accel", "tcg", "-m", "96MiB"], "cannot hold"),
        (["run", "--stage", "vm", "--numa", "many"], "--numa many"),
        (["run", "--stage", "vm", "--numa-distance", "0-1"], "not FROM,TO=DISTANCE"),
        (["run", "--stage", "vm", "--row", "fsdax-bind", "--set", "order=3"], "order 0, altmap"),
        (["run", "--stage", "vm", "--row", "fsdax-100GB"], "fsdax-100GB (--stage native has it)"),
        (["run", "fork", "--stage", "vm", "--row", "fork-64k"], "vm-fork-64k or vm-fork-4k"),
        (
            ["run", "fork", "--stage", "vm", "--row", "fork-64k"],
            "fork-64k (--stage native has it; did you mean ",
        ),
        (["run", "fork", "--count", "--control", "3%"], "what is counted has no time to slow"),
        (["replicate", "popple"], "popple (did you mean zone-device-private-popple?); `ream list"),
        (
            ["report", "--html", "out.txt", "007a"],
            "--html out.txt: FILE must end in .html; --html=",
        ),
        (["run", "fork", "--row", "frok-64k"], "fork has no row frok-64k (did you mean fork-64k"),
        (["plan", "fork", "--row", "live-fork-4k"], "live-fork-4k (--stage live has it; did you "),
        (["report", "nothing"], "no record 'nothing'"),
        (["report"], "no record in"),
    ],
)
def test_bad_words_are_refused_in_one_line(ream, words: list[str], said: str) -> None:
    answer = ream(*words)
    assert answer.code == USAGE
    assert answer.out == ""
    assert said in answer.err
    assert "Traceback" not in answer.err
    assert len(answer.err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["judge", "x", "--minutes", "abc"], "'--minutes': must be a valid number, not 'abc'"),
        (["run", "--launches", "abc"], "'--launches': must be a valid integer, not 'abc'"),
        (["run", "--seed", "-1"], "'--seed': must be greater than or equal to 0, not '-1'"),
        (["run", "--stage", "natve"], "'--stage': 'natve' is not one of 'native', 'vm', 'live'."),
        (["completion", "tcsh"], "'shell': 'tcsh' is not one of 'bash', 'zsh', 'fish'."),
    ],
)
def test_a_value_is_refused_without_the_words_of_a_library(
    ream, words: list[str], said: str
) -> None:
    answer = ream(*words)
    assert (answer.code, answer.out) == (USAGE, "")
    assert answer.err.splitlines()[-1] == f"Error: Invalid value for {said}"


def test_a_dry_run_says_that_no_record_could_be_put_there(ream, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = ream("run", "--dry-run", "-o", "file/runs").out
    assert "record      a new directory in file/runs; but nothing can be put there" in said
    assert "nothing can be put there" not in ream("run", "--dry-run", "-o", "runs").out


def test_a_terminal_gets_errors_cut_between_words(capfd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    _say("ream: no experiment; there is zone-device, zone-contiguous, or\n\n  a folder of your own")
    said = capfd.readouterr().err.splitlines()
    assert said[-2:] == ["", "  a folder of your own"]
    assert [line.rstrip() for line in said[:2]] == [
        "ream: no experiment; there is zone-device, zone-contiguous,",
        "or",
    ]


@pytest.mark.native
@pytest.mark.usefixtures("kernel")
def test_what_a_guest_cannot_have_is_refused_in_one_line_once_the_kernel_is_here(ream) -> None:
    said = ream("run", "--stage", "vm", "--accel", "tcg", "--cpus", "2")
    assert said.code == USAGE
    assert "there is one CPU" in said.err
    assert len(said.err.strip().splitlines()) == 1


@pytest.mark.parametrize(("words", "unbuffered"), [("completion bash", ""), ("list", "1")])
def test_a_full_disk_behind_standard_output_is_told_in_one_line(
    tmp_path: Path, words: str, unbuffered: str
) -> None:
    answer = _shell(tmp_path, f"{words} >/dev/full", unbuffered)
    assert answer.returncode == CANNOT_RUN
    assert answer.stderr == "ream: cannot write: No space left on device\n"


@pytest.mark.parametrize(("words", "unbuffered"), [("run --help", ""), ("list", "1")])
def test_a_pipe_that_nobody_reads_is_exit_141_and_no_word(
    tmp_path: Path, words: str, unbuffered: str
) -> None:
    gone = f"{words} | (exec <&-; sleep 0.3); exit ${{PIPESTATUS[0]}}"
    answer = _shell(tmp_path, gone, unbuffered)
    assert (answer.returncode, answer.stderr) == (BROKEN_PIPE, "")


def test_what_went_wrong_has_its_code_where_nobody_can_be_told(tmp_path: Path) -> None:
    assert _shell(tmp_path, "report nothing 2>/dev/full", "").returncode == USAGE
    assert _shell(tmp_path, "report nothing 2>&-", "1").returncode == USAGE
    both = _shell(tmp_path, "report nothing >/dev/full", "")
    assert both.returncode == USAGE
    assert "no record 'nothing'" in both.stderr


@pytest.mark.parametrize(("words", "unbuffered"), [("man", ""), ("--version", "1")])
def test_what_a_closed_standard_output_loses_is_told_in_one_line(
    tmp_path: Path, words: str, unbuffered: str
) -> None:
    answer = _shell(tmp_path, f"{words} >&-", unbuffered)
    assert answer.returncode == CANNOT_RUN
    assert answer.stderr == "ream: cannot write: standard output is closed\n"
    assert _shell(tmp_path, f"{words} >&- 2>&-", unbuffered).returncode == CANNOT_RUN


def test_a_closed_standard_output_is_no_error_where_nothing_goes_there(tmp_path: Path) -> None:
    assert _shell(tmp_path, "history >&-", "").returncode == 0
    assert _shell(tmp_path, "report nothing >&-", "").returncode == USAGE


def _shell(here: Path, line: str, unbuffered: str) -> "subprocess.CompletedProcess[str]":
    """Run ream with channels as a shell makes them; unbuffered: else all goes out at the end."""
    return subprocess.run(
        ("bash", "-c", f'"$0" -P -m ream {line}', sys.executable),
        cwd=here,
        env={
            **os.environ,
            "PYTHONPATH": str(CHECKOUT / "lab"),
            "XDG_DATA_HOME": str(here),
            "PYTHONUNBUFFERED": unbuffered,
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_every_fault_of_an_experiment_file_is_told_at_once(ream, tmp_path: Path) -> None:
    text = file_of("zone-device").read_text()
    broken = tmp_path / "mine.toml"
    broken.write_text(text.replace('"100GiB"', '"100MiB"', 1).replace("launches = 8", "launch = 8"))
    answer = ream("run", str(broken))
    assert answer.code == USAGE
    lines = answer.err.strip().splitlines()
    assert any(
        "device_bytes" in line and "not a whole number of sections" in line for line in lines
    )
    assert any("launches" in line for line in lines)
    assert any("launch:" in line for line in lines)


@pytest.mark.parametrize("garbage", [b"\xff\xfe\x00garbage", b"= = =\n", b""])
def test_garbage_is_no_experiment(ream, tmp_path: Path, garbage: bytes) -> None:
    (tmp_path / "mine.toml").write_bytes(garbage)
    answer = ream("run", "mine.toml")
    assert (answer.code, answer.out) == (USAGE, "")
    assert "mine.toml" in answer.err
    assert "Traceback" not in answer.err


def test_an_output_that_cannot_be_written_is_said_before_anything_is_measured(
    ream, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("not a directory")
    answer = ream("run", "--output", str(file / "runs"))
    assert answer.code == USAGE
    assert str(file) in answer.err
    assert "measur" not in answer.err


def test_a_patch_that_does_not_apply_names_patch_file_and_hunk(ream, tmp_path: Path) -> None:
    good = (CHECKOUT / "tests/native/patches/wrong-field.patch").read_text()
    (tmp_path / "mine.patch").write_text(
        good.replace("page->pgmap = pgmap;", "page->pgmap = NULL;")
    )
    answer = ream("run", "--series", "mine.patch", "--row", "small-256MB")
    assert answer.code == USAGE
    assert "mine.patch: does not apply: mm/mm_init.c: hunk 1" in answer.err
    assert not list((tmp_path / "data/ream/runs").glob("*"))


def test_a_missing_compiler_is_said_with_the_way_out(ream, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for directory in os.environ["PATH"].split(":"):
        for tool in Path(directory).glob("*"):
            if tool.name != "gcc" and not (tools / tool.name).is_symlink():
                (tools / tool.name).symlink_to(tool)
    answer = ream("run", "--row", "small-256MB", PATH=str(tools))
    assert answer.code == CANNOT_RUN
    assert "gcc: not installed; `make setup` installs what ream drives" in answer.err


def test_a_device_of_any_size_can_be_asked_for(ream) -> None:
    answer = ream(
        "run",
        "--row",
        "small-256MB",
        "--set",
        "device_bytes=64TiB",
        "--launches",
        "1",
        "--rounds",
        "1",
        "--dry-run",
    )
    assert answer.code == 0
    assert "64 TiB" in answer.out


def test_a_reader_who_goes_away_is_no_failure_of_ours(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "ream", "list"],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / "lab"), "PYTHONUNBUFFERED": "1"},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 141
    assert "Traceback" not in said


@pytest.mark.parametrize("experiment", ["zone-device", "fork", "mprotect"])
def test_too_small_a_guest_is_refused_before_a_kernel_is_fetched(
    ream, monkeypatch: pytest.MonkeyPatch, experiment: str
) -> None:
    monkeypatch.setattr("ream.session.run.fetch_tree", lambda *_, **__: pytest.fail("fetched"))
    words = ("run", experiment, "--stage", "vm", "--accel", "tcg", "-m", "96MiB")
    answer = ream(*words)
    assert answer.code == USAGE
    assert "cannot hold" in answer.err
