# SPDX-License-Identifier: GPL-2.0-only
"""The C program that performs the steps of a program by system calls."""

import json
import subprocess
from pathlib import Path

import pytest

from ream.program.generate import WEIGHTS, generate
from ream.program.grammar import FORMS
from ream.program.reproducer import reproducer, unperformed
from ream.program.text import parse

TEXT = """\
memory 512M
file f 64K shmem
p0 mmap a 512 anon private rw thp=never
p0 write a
reclaim 300
p0 fork p1
p1 munmap a[8:16]
p1 write a[0:4] same=7
p0 mremap a b 600
p0 read b
p1 exit
p0 mmap c 16 f shared rw
p0 write c
p0 madvise b[4:8] dontneed
p0 read b
measure p0 mprotect b r
p0 write b
"""


def built(text: str, folder: Path) -> Path:
    source, program = folder / "program.c", folder / "program"
    source.write_text(text)
    flags = ("-O2", "-Wall", "-Wextra", "-Wshadow", "-Werror")
    subprocess.run(["gcc", *flags, "-o", program, source], check=True)
    return program


def run(text: str, folder: Path) -> tuple[int, list[dict[str, int | str]]]:
    """How a program ends, and its lines."""
    ended = subprocess.run(
        [built(text, folder)], stdout=subprocess.PIPE, cwd=folder, timeout=60, check=False
    )
    return ended.returncode, [json.loads(line) for line in ended.stdout.splitlines()]


def test_what_user_space_cannot_perform_is_named() -> None:
    written = reproducer(parse(TEXT))
    assert '\t{ 1, NO_PROCESS, "memory" },\t/* memory 512M */\n' in written
    assert '\t{ 5, NO_PROCESS, "reclaim" },\t/* reclaim 300 */\n' in written
    assert "case 5:" not in written


def test_what_is_left_out_depends_on_whether_settings_are_written() -> None:
    its = parse("mthp 16K\np0 mmap a 4 anon private rw\np0 call fixup_fault a[0:2]\n")
    assert unperformed(its) == {"mthp", "call fixup_fault"}
    assert unperformed(its, sets=True) == {"call fixup_fault"}
    assert "do_mthp(4)" in reproducer(its, sets=True)


def test_files_of_settings_are_written_only_where_that_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "setting"
    file.write_text("")
    text = TEXT + "set /proc/sys/vm/swappiness 60\np0 call clear_refs x=4\n"
    text += "p0 call pagemap_scan b x=8\nset /sys/fs/cgroup/g/memory.high max\n"
    text = text.replace("file f", "group g 64M\nfile f")
    program = parse(text)
    assert '"set" },\t/* set /proc/sys/vm/swappiness 60 */' in reproducer(program)
    written = reproducer(program, sets=True)
    assert 'returned = do_set("/proc/sys/vm/swappiness", "60");' in written
    assert '"set" },\t/* set /sys/fs/cgroup/g/memory.high max */' in written
    ended, said = run(written.replace("/proc/sys/vm/swappiness", str(file)), tmp_path)
    assert (ended, file.read_text()) == (0, "60")
    by_line = {its["line"]: its for its in said}
    assert by_line[19]["returned"] == 2


@pytest.mark.parametrize(("before", "after"), [("60\n", "60"), ("a [b c] d\n", "b c")])
def test_settings_are_put_back(tmp_path: Path, before: str, after: str) -> None:
    file = tmp_path / "setting"
    file.write_text(before)
    text = "set /proc/sys/vm/swappiness 10\nset /proc/sys/vm/swappiness 20\n"
    program = parse(text + "p0 mmap a 1 anon private rw\n")
    written = reproducer(program, sets=True).replace("/proc/sys/vm/swappiness", str(file))
    ended, said = run(written, tmp_path)
    assert (ended, [its["returned"] for its in said]) == (0, [2, 2, 0])
    assert file.read_text().startswith(after)


def test_what_files_say_is_returned_where_it_is_one_number(tmp_path: Path) -> None:
    one, more = tmp_path / "one", tmp_path / "more"
    one.write_text("-60\n")
    more.write_text("1 2\n")
    text = "p0 mmap a 4 anon private rw\np0 write a[0:3]\np0 call proc a x=1 y=1\n"
    text += "show /proc/sys/vm/one\nshow /proc/sys/vm/more\np0 call proc x=4\n"
    written = reproducer(parse(text), sets=True).replace("/proc/sys/vm", str(tmp_path))
    assert [one["returned"] for one in run(written, tmp_path)[1][2:]] == [12, -60, 0, 0]


def test_the_measured_step_alone_has_a_time(tmp_path: Path) -> None:
    ended, said = run(reproducer(parse(TEXT)), tmp_path)
    assert ended == 0
    assert [one["line"] for one in said if "timed_ns" in one] == [16]
    assert "now_ns" not in reproducer(parse("p0 mmap a 4 anon private rw\n"))


def test_a_step_is_a_call_with_what_it_is_to_return() -> None:
    written = reproducer(parse(TEXT))
    assert (
        "\tcase 4:\t/* p0 write a */\n\t\treturned = assume(512, do_write(0, 512, 0));" in written
    )
    assert "\t\texpect(1024, 512, 4, 0);\n\t\texpect_same(1536, 88, 0);\n\t\treturned =" in written


def test_functions_that_no_step_needs_are_left_out() -> None:
    written = reproducer(parse(TEXT))
    assert "do_mremap(long" in written
    assert not {"do_mlock(", "userfault", "do_pread("} & set(written.replace("(", "( ").split())
    assert len(reproducer(parse("")).splitlines()) < len(written.splitlines())


def test_a_program_that_no_text_has_gets_the_lines_of_its_canonical_text() -> None:
    program = generate(1, 20)
    assert reproducer(program) == reproducer(parse(str(program)))


@pytest.mark.native
def test_a_reproducer_runs_each_step_in_its_process_and_finds_what_it_expects(tmp_path) -> None:
    code, lines = run(reproducer(parse(TEXT)), tmp_path)
    assert code == 0
    assert [one["line"] for one in lines] == list(range(1, 18))
    found = {one["line"]: one.get("returned", one.get("skipped")) for one in lines}
    assert found == {
        1: "memory", 2: 0, 3: 0, 4: 512, 5: "reclaim", 6: 0, 7: 0, 8: 4, 9: 0, 10: 600, 11: 0,
        12: 0, 13: 16, 14: 0, 15: 600, 16: 0, 17: 0,
    }  # fmt: skip


@pytest.mark.native
def test_a_page_that_holds_something_wrong_is_named_and_ends_in_five(tmp_path) -> None:
    wrong = reproducer(parse(TEXT)).replace("expect(1024, 512, 4, 0)", "expect(1024, 512, 4, 1)")
    code, lines = run(wrong, tmp_path)
    assert code == 5
    assert lines[9] == {
        "line": 10, "returned": 600, "wrong_page": 1024,
        "found": (4 << 32) + 1, "expected": (4 << 32) + 2,
    }  # fmt: skip


@pytest.mark.native
def test_a_process_that_is_killed_ends_the_run_with_its_line(tmp_path) -> None:
    killed = reproducer(parse(TEXT)).replace(
        "do_munmap(8, 8)", "kill(getpid(), do_munmap(8, 8) + SIGKILL)"
    )
    code, lines = run(killed, tmp_path)
    assert code == 1
    assert lines[-1] == {"line": 7, "died": 1}


@pytest.mark.native
def test_a_process_that_exits_while_others_run_leaves_them_alone(tmp_path) -> None:
    text = "p0 mmap a 4 anon private rw\n" + "p0 fork p1\np0 write a\np1 exit\n" * 200
    code, lines = run(reproducer(parse(text)), tmp_path)
    assert code == 0
    assert len(lines) == 601


@pytest.mark.native
@pytest.mark.parametrize("seed", range(4))
def test_generated_programs_find_on_this_kernel_what_is_predicted(tmp_path, seed: int) -> None:
    weights = {name: weight for name, weight in WEIGHTS.items() if name != "wait"}
    code, _ = run(reproducer(generate(seed, 150, weights)), tmp_path)
    assert code == 0


@pytest.mark.native
def test_every_step_that_has_a_function_compiles_alone(tmp_path) -> None:
    """Each function needs others, which are left out unless it does."""
    alone = {
        "uffd_register": "a wp", "uffd_copy": "a", "madvise": "a cold", "mlock": "a",
        "migrate_pages": "from=0 to=0", "mincore": "a", "read": "a", "write": "a",
    }  # fmt: skip
    assert set(alone) < set(FORMS)
    for verb, words in alone.items():
        built(reproducer(parse(f"p0 mmap a 4 anon private rw\np0 {verb} {words}\n")), tmp_path)
    built(reproducer(parse("")), tmp_path)
