# SPDX-License-Identifier: GPL-2.0-only
"""People's text of a program: what it means, and what is said about a wrong one."""

import itertools
import random
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ream.errors import BadUsage
from ream.program.collection import texts_in, write_texts
from ream.program.grammar import FORMS, Form
from ream.program.kinds import (
    Bytes,
    Name,
    Nodes,
    Number,
    Pages,
    Place,
    PlaceOf,
    Process,
    Range,
    Swap,
    Text,
    Time,
    Value,
    Word,
    Words,
)
from ream.program.scene import Call, resolve
from ream.program.step import Program, ProgramError, Step
from ream.program.text import load_program, parse

EXAMPLE = """\
memory 512M 256M            # nodes
cpus 2
group g 64M
file f 1M shmem
swap 192M synchronous
p0 join g
p0 mmap a 512 anon private rw populate thp=never
p0 mmap b 64 f+8 shared r at=a+16
p0 mmap c 64 anon private rw after=a

p0 write a
p0 write a[16:32] same=7
p0 read a[0]
p0 fork p1
p1 munmap a[8:16]
p1 mmap d 1 anon private rw
p0 mremap a e 600 dontunmap
p0 mremap a[0:8] a 16 stay
p0 mbind a bind nodes=0,1 move
p0 move_pages a node=1
p0 migrate_pages from=0 to=1
p0 uffd_register a wp,missing
p0 uffd_move a[0:4] from=b+16
fallocate f[4:8] punch
truncate f 16
pwrite f
hog 6000 every=2
wait 11s
wait 1500ms
swap off
swap on
measure p0 mprotect a r
"""


def calls_of(text: str) -> dict[int, tuple[Call, ...]]:
    found: dict[int, tuple[Call, ...]] = {}
    for call in resolve(parse(text)):
        found[call.line] = (*found.get(call.line, ()), call)
    return found


def fault(text: str) -> str:
    with pytest.raises(ProgramError) as raised:
        parse(text, "x.mm")
    return str(raised.value)


def test_a_program_is_printed_as_it_was_read_but_for_comments() -> None:
    bare = "".join(f"{line.split('#')[0].rstrip()}\n" for line in EXAMPLE.splitlines() if line)
    assert str(parse(EXAMPLE)) == bare.replace("wp,missing", "missing,wp").replace(
        "nodes=0,1 move", "move nodes=0,1"
    )


def test_a_step_keeps_its_line_which_equality_ignores() -> None:
    once, later = parse("compact\n"), parse("\n# nothing\n compact  \r\n")
    assert [step.line for step in later] == [3]
    assert once == later


def test_the_text_alone_decides_addresses() -> None:
    found = calls_of(EXAMPLE)
    pages = {line: found[line][0].arguments["page"] for line in (7, 8, 9, 16)}
    assert pages == {7: 0, 8: 16, 9: 512, 16: 1536}  # d: behind c, a gap, and aligned
    assert found[17][0].arguments["new_page"] == 1536  # each process goes on by itself
    assert found[15][0].arguments == {"process": 1, "page": 8, "nr": 8}


def test_a_step_may_be_several_calls_of_which_the_first_is_measured() -> None:
    mapped = calls_of("measure p0 mmap a 8 anon private rw thp=always\n")[1]
    assert [(call.name, call.measured) for call in mapped] == [("mmap", True), ("madvise", False)]
    assert mapped[0].arguments["flags"] == 0x32
    assert mapped[1].arguments == {"process": 0, "page": 0, "nr": 8, "advice": 14}


def test_words_become_the_numbers_of_the_kernel() -> None:
    found = calls_of(EXAMPLE)
    assert found[1][0].arguments == {"node0": 131072, "node1": 65536, "node2": 0, "node3": 0}
    assert found[18][0].arguments == {
        "process": 0, "page": 0, "nr": 8, "new_nr": 16, "flags": 0, "new_page": 0
    }  # fmt: skip
    assert found[19][0].arguments == {
        "process": 0, "page": 0, "nr": 512, "mode": 2, "flags": 2, "nodes": 3
    }  # fmt: skip
    assert found[21][0].arguments == {"process": 0, "from": 1, "to": 2}
    assert found[22][0].arguments["mode"] == 3
    assert found[23][0].arguments["from_page"] == 32
    assert found[24][0].arguments == {"file": 0, "page": 4, "nr": 4, "mode": 3}
    assert found[26][0].arguments == {
        "file": 0, "page": 0, "nr": 16, "flags": 0
    }  # fmt: skip
    assert found[29][0].arguments == {"ms": 1500}


def test_a_program_without_memory_gets_some() -> None:
    first = resolve(parse("compact\n"))[:2]
    assert [(call.line, call.name) for call in first] == [(0, "memory"), (0, "cpus")]


def test_flags_that_are_left_out_are_those_of_the_usual_call() -> None:
    text = "p0 mmap a 8 anon private rw\np0 mlockall\np0 msync a\np0 mlock a\n"
    found = calls_of(text)
    assert [found[line][0].arguments["flags"] for line in (2, 3, 4)] == [1, 4, 0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("p0 wirte a", '"wirte" is no step (did you mean write'),
        ("write a", "write: a process does this; write `p0 write`"),
        ("p0 compact", "compact: no process does this; leave p0 out"),
        ("p0 read a", 'read: no area "a" in this process; its areas are: none yet'),
        ("p3 read a", "read: there is no process p3 here; fork it first"),
        ("p16 read a", '"p16" is not a process; write p0 to p15'),
        ("cpus 0", 'cpus: "0" is not a number from 1 to 64 (usage: cpus NR)'),
        ("memory 5", '"5" is not a size; write for example 512M, 64K or 1G (usage: memory SIZE ['),
        ("reclaim", "reclaim: too few words: no nr (usage: reclaim PAGES)"),
        ("p0 run_on", "run_on: too few words: no cpu= (usage: pN run_on cpu=CPU)"),
        ("p0 run_on cpu=1", "run_on: there is no CPU 1; `cpus` declares 1"),
        ("p0 migrate_pages from=0 to=1", "migrate_pages: there is no node 1; `memory` declares 1"),
        ("compact\ncpus 2", '"cpus" describes the computer; write it before all other steps'),
        ("swap on", "swap: there is no swap yet; write its size first, as in `swap 192M`"),
        ("truncate f 1", 'no file "f"; declare it above, as in `file f 1M shmem`'),
        ("p0 mmap anon 1 anon private r", '"anon" has a meaning of its own; choose another name'),
        ("p0 mmap a 8 anon private r\np0 read a[4:9]", '2: read: "a[4:9]" is beyond the 8 pages'),
        ("p0 mmap a 8 anon private r\np0 read a[4:4]", '"a[4:4]" has no pages'),
        ("p0 mmap a 8 anon private r\np0 mremap a b 8 stay", "as in `mremap a a 8 stay`"),
        ("measure compact\nmeasure compact", "2: compact: a program measures at most one step"),
        ("measure", "measure: no step"),
        ("wait 5", '"5" is not a time; write for example 11s or 250ms'),
        ("compact now", '"now" is more than the step has'),
        ("p0 munlockall \x00\u0661", '"\\x00\\u0661" is more than'),
    ],
)  # fmt: skip
def test_a_fault_names_file_and_line_and_a_way_out(text: str, said: str) -> None:
    found = fault(text)
    assert found.startswith("x.mm:")
    assert said in found


def test_all_faults_are_named_at_once() -> None:
    assert [line.split(":")[1] for line in fault("a\ncompact\nb\n").splitlines()] == ["1", "3"]
    assert "x.mm: 2 further lines are wrong" in fault("nothing\n" * 12)


def test_a_file_that_is_not_there_is_named(tmp_path) -> None:
    with pytest.raises(BadUsage, match="gone.mm: No such file"):
        load_program(tmp_path / "gone.mm")
    (tmp_path / "there.mm").write_bytes(b"compact\n\xff\n")
    with pytest.raises(ProgramError, match="there.mm:2: "):
        load_program(tmp_path / "there.mm")


def test_one_program_of_many_in_a_file_is_read_by_its_name(tmp_path: Path) -> None:
    path, texts = tmp_path / "some.programs", {"b": "compact\n", "a-1": "# why\nreclaim 3\n"}
    write_texts(path, texts)
    assert texts_in(path) == texts
    assert [*texts_in(path)] == ["a-1", "b"]
    assert str(load_program(tmp_path / "some.programs:a-1")) == "reclaim 3\n"
    with pytest.raises(BadUsage, match=r"some\.programs: no program 'c' among a-1, b"):
        load_program(tmp_path / "some.programs:c")
    with pytest.raises(BadUsage, match=r"many programs; name one of them as .*programs:NAME"):
        load_program(path)
    path.write_text("=== a\ncompact\n=== b\nno step\n")
    with pytest.raises(ProgramError, match=r"some\.programs:b:1: "):
        load_program(tmp_path / "some.programs:b")
    path.write_text("=== a\ncompact\n=== a\ncompact\n")
    with pytest.raises(BadUsage, match="two programs are called a"):
        texts_in(path)


def garbage(dice: random.Random) -> bytes:
    """A wrong program: words of right ones with a few bytes and words changed, or bytes alone."""
    if dice.random() < 0.2:
        return dice.randbytes(dice.randrange(200))
    lines = EXAMPLE.splitlines()
    dice.shuffle(lines)
    words = " \n ".join(lines[: dice.randrange(1, 30)]).split(" ")
    for _ in range(dice.randrange(1, 6)):
        words[dice.randrange(len(words))] = dice.choice(words)
    text = bytearray(" ".join(words).encode())
    for _ in range(dice.randrange(8)):
        text[dice.randrange(len(text))] = dice.randrange(256)
    return bytes(text)


def faults(text: bytes) -> list[str]:
    try:
        program = parse(text)
    except ProgramError as wrong:
        return str(wrong).split("\n")
    assert parse(str(program)) == program
    return []


def test_a_thousand_garbage_programs_end_in_order() -> None:
    dice = random.Random(1)
    found = [faults(garbage(dice)) for _ in range(1000)]
    for line in itertools.chain(*found):
        assert re.match(r"program:([0-9]+:| [0-9]+ further)", line), line
        assert line.isprintable()
    assert 900 < sum(map(bool, found)) < 1000


NAMES = st.sampled_from(["a", "b", "f", "g"])


def subsets(of: Iterable[str | int]) -> st.SearchStrategy[Value]:
    order = tuple(of)
    chosen = st.sets(st.sampled_from(order), min_size=1)
    return chosen.map(lambda its: tuple(one for one in order if one in its))


def places(kind: PlaceOf) -> st.SearchStrategy[Value]:
    place = st.builds(Place, NAMES, st.integers(0, 1 << 20))
    return st.one_of(place, st.just(kind.none)) if kind.none else place


RANGES = st.one_of(
    st.builds(
        lambda name, begin, nr: Range(name, begin, begin + nr),
        NAMES, st.integers(0, 600), st.integers(1, 600),
    ),
    st.builds(Range, NAMES),
)  # fmt: skip

VALUES: dict[type, Callable[[Any], st.SearchStrategy[Value]]] = {
    Swap: lambda _: st.sampled_from(["on", "off", 4096, 1 << 30]),
    Bytes: lambda _: st.integers(1, 1 << 24).map(lambda nr: nr * 4096),
    Number: lambda kind: st.integers(kind.least, kind.most),
    Time: lambda _: st.integers(1, 10**9),
    Word: lambda kind: st.sampled_from(sorted(kind.numbers)),
    Words: lambda kind: subsets(kind.numbers),
    Nodes: lambda _: subsets(range(4)),
    Process: lambda _: st.integers(0, 15),
    Name: lambda _: NAMES,
    PlaceOf: places,
    Pages: lambda _: RANGES,
    Text: lambda kind: st.from_regex(re.compile(kind.pattern, re.ASCII), fullmatch=True),
}


def values(kind: object) -> st.SearchStrategy[Value]:
    return VALUES[type(kind)](kind)


@st.composite
def steps(draw: st.DrawFn, form: Form) -> Step:
    least = len(form.operands) - form.nr_optional
    nr_operands = draw(st.integers(least, len(form.operands)))
    kinds = dict(list(form.operands.items())[:nr_operands])
    for name, option in form.options.items():
        if option.required or draw(st.booleans()):
            kinds[name] = option.kind
    flags = tuple(flag for flag in form.flags if draw(st.booleans()))
    process = draw(st.integers(0, 15)) if form.process else None
    chosen = tuple((name, draw(values(kind))) for name, kind in kinds.items())
    return Step(form.verb, process, chosen, flags, draw(st.booleans()))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_any_step_is_read_as_it_was_printed(monkeypatch, form: Form) -> None:
    """Whether it fits those before it is another question, which is not asked here."""
    monkeypatch.setattr("ream.program.text.resolve", lambda *_: ())

    @settings(max_examples=25, deadline=None, database=None)
    @given(steps(form))
    def check(step: Step) -> None:
        assert parse(f"{step}\n") == Program((step,))

    check()


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_smaller_value_is_another_one_of_its_kind(form: Form) -> None:
    @settings(max_examples=25, deadline=None, database=None)
    @given(steps(form))
    def check(step: Step) -> None:
        for name, value in step.values:
            kind = step.kind(name)
            for smaller in kind.smaller(value):
                assert smaller != value
                assert kind.parse(kind.show(smaller)) == smaller

    check()
