# SPDX-License-Identifier: GPL-2.0-only
"""`ream run compact` as users type it: what it would do, and what it refuses."""

from pathlib import Path

import pytest

USAGE = 2
TCG = ("run", "compact", "--accel", "tcg")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--row", "quux"],
            "compact has no row quux; it has baseline-1gib, dma-1gib, quarter-1gib, baseline",
        ),
        (["--row", "batch-32"], "compact has no row batch-32 (--stage native has it)"),
        (["--stage", "native", "--row", "dma"], "no row dma (--stage vm has it)"),
        (["--set", "device_bytes=1GiB"], "device_bytes: no field of a row"),
        (["--memory", "16GiB"], "whose size is the row's node_bytes"),
        (["--numa", "8GiB,cpus=0", "--numa", "8GiB"], "whose size is the row's node_bytes"),
        (["--icount"], "leave out busy-baseline, busy-dma, dma-two-cpus with --row"),
        (["--row", "busy-dma", "--cpus", "1"], "the engine needs another; give 2 at least"),
        (["--row", "dma", "--cpus", "2"], "where instructions are counted there is one CPU"),
        (["--threads", "2"], "--cpus gives a guest its CPUs"),
        (["--launches", "0"], "launches: must be between 1 and"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(ream, words: list[str], said: str) -> None:
    more = () if "native" in words else ("--accel", "tcg")
    answer = ream("run", "compact", *more, *words, "--dry-run")
    assert answer.code == USAGE
    assert answer.out == ""
    assert said in answer.err
    assert len(answer.err.strip().splitlines()) == 1


def test_a_file_full_of_garbage_gets_every_fault_in_a_line(ream, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        'name = "compact"\nquestion = "?"\nlaunches = 1\nvariants = {}\n'
        'rows = [{ name = "a", nr_huge = -1 }, { name = "b", mode = "x" }, { name = "c", y = 1 }]\n'
    )
    answer = ream("run", "mine.toml", "--dry-run")
    assert answer.code == USAGE
    lines = answer.err.strip().splitlines()
    assert len(lines) == 3
    assert "rows.0.nr_huge" in lines[0]
    assert "rows.1.mode" in lines[1]
    assert "rows.2.y" in lines[2]


def test_it_means_the_guests_of_the_published_table(ream) -> None:
    said = ream(*TCG, "--seed", "5", "--dry-run")
    assert said.code == 0, said.err
    assert said.out.startswith("experiment  compact, vm stage: ")
    for text in (
        "6.18 GB/s a channel); 1 round row",
        "a hog on the same CPU; 1 round, in ns row",
        "launches 4, seed 5: 144 boots in all",
        "memory 4,096 MiB of the host, and 1,024, for each guest",
    ):
        assert text in " ".join(said.out.split())
    commands = {
        line.split()[0]: line for line in said.out.splitlines() if "qemu-system-x86_64" in line
    }
    assert list(commands)[3:7] == ["baseline", "dma", "busy-baseline", "busy-dma"]
    assert "-icount" in commands["dma"]
    assert "-smp 1" in commands["dma"]
    assert "mode=dma" in commands["dma"]
    assert "-icount" not in commands["busy-dma"]
    assert "-smp 2" in commands["busy-dma"]


def test_where_times_are_wanted_every_row_has_its_launches(ream) -> None:
    said = ream(*TCG, "--no-icount", "--cpus", "3", "--row", "dma", "--dry-run")
    assert said.code == 0, said.err
    assert "16 boots in all" in said.out
    assert "-smp 3" in said.out


def test_its_rows_are_listed_with_their_stages(ream) -> None:
    said = ream("list", "compact")
    for text in ("vm: 9 rows", "busy-dma", "live: 2 rows", "batch-#-metadata"):
        assert text in said.out
