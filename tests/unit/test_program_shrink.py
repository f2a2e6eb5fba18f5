# SPDX-License-Identifier: GPL-2.0-only
"""The shortest program that still fails."""

import pytest

from ream.program.generate import generate
from ream.program.kinds import Range, halves
from ream.program.scene import resolve
from ream.program.shrink import shrink
from ream.program.step import Program
from ream.program.text import parse


def has(program: Program, *verbs: str) -> bool:
    """Whether these steps are there in this order."""
    left = iter(step.verb for step in program)
    return all(verb in left for verb in verbs)


def test_only_the_steps_on_which_a_failure_depends_are_left() -> None:
    program = generate(17, 300)
    assert has(program, "fork", "mremap", "reclaim")
    tried = 0

    def fails(program: Program) -> bool:
        nonlocal tried
        tried += 1
        return has(program, "fork", "mremap", "reclaim")

    found = shrink(program, fails, within_s=60)
    assert tried < 200
    assert sorted(step.verb for step in found) == ["fork", "mmap", "mremap", "reclaim"]


def test_every_program_that_is_tried_is_a_valid_one() -> None:
    def fails(program: Program) -> bool:
        resolve(program)
        assert parse(str(program)) == program
        return has(program, "uffd_move")

    found = shrink(generate(2, 200, {"uffd-fill": 1, "mremap": 1}), fails, within_s=60)
    assert [step.verb for step in found][-1] == "uffd_move"
    assert len(found) <= 4


def test_sizes_ranges_and_options_get_smaller() -> None:
    text = """\
p0 mmap a 1024 anon private rw populate thp=always
p0 write a[100:612] same=9
p0 mremap a b 1024 dontunmap
"""

    def fails(program: Program) -> bool:
        calls = [one.arguments for one in resolve(program) if one.name == "write"]
        return bool(calls) and calls[0]["nr"] >= 37

    found = shrink(parse(text), fails, within_s=60)
    assert [step.verb for step in found] == ["mmap", "write"]
    assert found.steps[1].range() == Range("a", 0, 37)
    assert not found.steps[1].get("same")
    assert found.steps[0].number("nr") < 40


def test_a_failure_of_the_whole_program_alone_leaves_it_as_it_is() -> None:
    program = generate(1, 20)
    assert shrink(program, lambda _: False, within_s=60) == program


def test_what_fails_without_any_step_becomes_empty() -> None:
    assert not len(shrink(generate(1, 20), lambda _: True, within_s=60))


def test_no_program_is_tried_twice() -> None:
    tried: list[Program] = []

    def fails(program: Program) -> bool:
        tried.append(program)
        return has(program, "mprotect")

    shrink(generate(4, 60), fails, within_s=60)
    assert len(tried) == len(set(tried))


def test_the_search_ends_in_time_with_the_shortest_so_far() -> None:
    times = iter(range(10_000))
    tried = 0

    def fails(program: Program) -> bool:
        nonlocal tried
        tried += 1
        return has(program, "mprotect")

    program = generate(4, 200)
    found = shrink(program, fails, within_s=5, now=lambda: float(next(times)))
    assert tried <= 5
    assert has(found, "mprotect")
    assert len(found) < len(program)


def test_steps_stay_as_they_are_where_they_may_only_go() -> None:
    program = generate(5, 200)

    def fails(program: Program) -> bool:
        return has(program, "fork", "mremap")

    found = shrink(program, fails, within_s=60, only_deletes=True)
    assert has(found, "fork", "mremap")
    assert len(found) < 8
    assert set(found.steps) <= set(program.steps)


def test_a_parent_does_what_its_child_did_if_no_child_is_needed() -> None:
    text = """\
p0 mmap a 1 anon private rw
p0 fork p1
p0 exit
p1 write a
p1 fork p2
p2 mlock a
"""

    def fails(program: Program) -> bool:
        return has(program, "write", "fork", "mlock")

    found = shrink(parse(text), fails, within_s=60)
    assert [str(step) for step in found][:2] == ["p0 mmap a 1 anon private rw", "p0 write a[0]"]
    assert sum(step.verb == "fork" for step in found) == 1
    assert not has(found, "exit")


def test_an_area_gets_smaller_with_all_that_is_done_to_its_end() -> None:
    text = """\
p0 mmap a 37 anon private rw
p0 write a[3:37]
p0 mremap a b 37
p0 munmap b[36]
"""

    def fails(program: Program) -> bool:
        sizes = [step.number("nr") for step in program if step.verb == "mmap"]
        used = [step.range() for step in program if step.verb in {"write", "munmap"}]
        last = [(one.name, one.end) for one in used]
        return has(program, "mremap") and last == [("a", sizes[0]), ("b", sizes[0])]

    found = shrink(parse(text), fails, within_s=60)
    assert [str(step) for step in found] == [
        "p0 mmap a 1 anon private rw",
        "p0 write a[0]",
        "p0 mremap a[0] b 1",
        "p0 munmap b[0]",
    ]


@pytest.mark.parametrize("made", ["mremap a[0:8] b 8", "mmap b 8 anon private rw"])
def test_an_area_is_left_out_if_another_does_for_all_its_uses(made: str) -> None:
    text = f"p0 mmap a 9 anon private rw\np0 {made}\np0 write b[0:4]\np0 mlock b[0:4]\n"

    def fails(program: Program) -> bool:
        used = [step.range().name for step in program if step.verb in {"write", "mlock"}]
        return has(program, "write", "mlock") and len(set(used)) == 1

    found = shrink(parse(text), fails, within_s=60)
    assert [step.verb for step in found] == ["mmap", "write", "mlock"]


def test_an_area_that_lies_where_another_was_is_the_only_one() -> None:
    text = "p0 mmap a 9 anon private rw\np0 mmap b 9 anon shared rw at=a\np0 write a\np0 mlock a\n"

    def fails(program: Program) -> bool:
        used = [step.range().name for step in program if step.verb in {"write", "mlock"}]
        shared = [step.get("name") for step in program if step.get("sharing") == "shared"]
        placed = any(step.get("at") for step in program)
        return len(used) == 2 and len(shared) == 1 and (placed or set(used) == set(shared))

    found = shrink(parse(text), fails, within_s=60)
    assert [str(step) for step in found] == [
        "p0 mmap b 1 anon shared rw",
        "p0 write b[0]",
        "p0 mlock b[0]",
    ]


def test_two_steps_that_only_go_together_are_left_out_when_numbers_are_small() -> None:
    text = """\
p0 mmap a 64 anon private rw
p0 write a[0:40]
p0 munmap a[41]
p0 mlock a[0:40]
p0 munlock a[0:40]
"""

    def fails(program: Program) -> bool:
        written = [step.range() for step in program if step.verb == "write"]
        verbs = [step.verb for step in program]
        large = any((one.end or 64) > 1 for one in written)
        return (
            bool(written)
            and verbs.count("mlock") == verbs.count("munlock")
            and (not large or has(program, "mlock"))
        )

    found = shrink(parse(text), fails, within_s=60)
    assert [str(step) for step in found] == ["p0 mmap a 1 anon private rw", "p0 write a[0]"]


def test_a_number_becomes_the_least_that_fails_or_a_power_of_two() -> None:
    assert [*halves(37, 1)] == [1, 2, 18, 32, 33, 36]
    assert [*halves(512, 0)] == [0, 2, 256, 448, 511]
    assert [*halves(2, 1)] == [1]
    assert [*halves(1, 1)] == []
