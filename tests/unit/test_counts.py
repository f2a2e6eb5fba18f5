# SPDX-License-Identifier: GPL-2.0-only
"""Counts: what is said of them for each page, where they differ, and the gate that holds them."""

import subprocess
from pathlib import Path

import pytest

from ream.command import Command, run
from ream.errors import BadUsage
from ream.gate import words
from ream.gate.counts import gate_counts
from ream.measure.sample import Sample
from ream.paths import NATIVE
from ream.record.record import TABLE
from ream.report.contract import Counted, Summary
from ream.report.counts_table import differences, unit_words, with_calls
from record_world import PAGES, counted, made

SLOW = {"copy": {"instructions": 5000, "loads": 1000, "locked": 400}, "free": {"instructions": 300}}
FAST = {"copy": {"instructions": 2000, "loads": 1000}, "batch": {"instructions": 500}}
BOTH = {"before": SLOW, "published": FAST}


def summary(tmp_path: Path, **more: object) -> Summary:
    record = counted(tmp_path, 1, BOTH, **more)
    return Summary.from_object(record.run, source="a test")


def test_a_counted_sample_is_read_back_as_it_was_written() -> None:
    text = (
        '{"row": "r", "launch": 0, "round": 0, "role": "variant", "subject": "ream", "threads": 1,'
        ' "time_ns": 7, "nr_bytes": 64, "verified": true, "pages": 2, "functions": {"copy":'
        ' {"instructions": 7}}, "stand_ins": {"alloc": {"instructions": 3}}}'
    )
    sample = Sample.from_json(text, where="a test")
    assert sample.functions == {"copy": {"instructions": 7}}
    assert sample.stand_ins == {"alloc": {"instructions": 3}}
    assert Sample.from_json(sample.to_json(), where="a test") == sample


def test_a_row_is_counted_for_each_page_and_says_where_variants_differ(tmp_path: Path) -> None:
    (row,) = summary(tmp_path).rows
    assert row.unit == "instructions"
    its = row.counted
    assert its is not None
    assert (its.per, its.number, its.repeats) == ("page", PAGES, True)
    assert its.variants["before"] == {
        "instructions": 5300,
        "loads": 1000,
        "locked": 400,
        "lines_read": 3,
    }
    apart = differences(its, "before", "published")
    assert [name for name, _ in apart] == ["copy", "batch", "free"]
    assert apart[0][1] == {"instructions": -30.0, "locked": -4.0}


def test_the_table_says_what_differs_and_gives_no_verdict_on_a_published_time(
    tmp_path: Path,
) -> None:
    record = counted(tmp_path, 1, BOTH)
    text = (record.path / TABLE).read_text()
    assert "for each of 100 pages" in text
    assert "published: copy() -30.00 instr -4.00 locked; batch() +5.00 instr; free() -3.00" in text
    assert "alike     loads 10.00" in text
    assert "a locked operation is one instruction" in " ".join(text.split())
    assert "verdict" not in text
    (row,) = Summary.from_object(record.run, source="a test").rows
    assert row.published_table is not None
    assert row.published_table.verdict == "not-run"
    assert "counted, not timed" in str(row.published_table.reason)


def test_a_caller_is_named_that_differs_by_what_it_calls_but_not_the_root_of_all() -> None:
    its = Counted(
        per="page",
        number=100,
        repeats=True,
        variants={"before": {"instructions": 900}, "ream": {"instructions": 500}},
        stand_ins={},
        functions={
            "before": {"top": {"instructions": 200}, "leaf": {"instructions": 700}},
            "ream": {"top": {"instructions": 100}, "leaf": {"instructions": 400}},
        },
        inclusive={
            "before": {"top": {"instructions": 900}, "walk": {"instructions": 700}},
            "ream": {"top": {"instructions": 500}, "walk": {"instructions": 400}},
        },
    )
    assert list(with_calls(its, ["before", "ream"])) == [
        "ream, with what is called: walk() -3.00 instr"
    ]


def test_what_does_not_repeat_is_said(tmp_path: Path) -> None:
    again = {**SLOW, "free": {"instructions": 301}}
    (row,) = summary(tmp_path, again=again).rows
    assert row.counted is not None
    assert not row.counted.repeats
    other = counted(tmp_path, 2, BOTH, again=again)
    assert "MOVES" in (other.path / TABLE).read_text()
    found = gate_counts(other, counted(tmp_path, 3, BOTH), 0.1)
    assert found.word == "inconclusive"


def test_equal_counts_pass_and_less_of_something_does(tmp_path: Path) -> None:
    base = counted(tmp_path, 1, BOTH)
    same = gate_counts(counted(tmp_path, 2, BOTH), base, 0.1)
    assert same.word == "pass"
    assert {case.reason for case in same.cases} == {"counts equal"}
    assert [case.variant for case in same.cases] == ["before", "published"]
    less = {"before": SLOW, "published": {**FAST, "batch": {"instructions": 400}}}
    assert gate_counts(counted(tmp_path, 3, less), base, 0.1).word == "pass"


def test_growth_beyond_the_limit_fails_with_its_quantity_and_function(tmp_path: Path) -> None:
    base = counted(tmp_path, 1, BOTH)
    more = {"before": SLOW, "published": {**FAST, "copy": {"instructions": 2003, "loads": 1000}}}
    grown = counted(tmp_path, 2, more)
    assert gate_counts(grown, base, 0.2).word == "pass"
    found = gate_counts(grown, base, 0.1)
    assert found.word == "fail"
    (case,) = (one for one in found.cases if one.word == "fail")
    assert case.variant == "published"
    assert case.reason == "+0.03 instructions a page (+0.12 %), most in copy()"
    said = words.text(found)
    assert "0.1 % more of anything that is counted" in said
    assert "1 grew beyond the limit, 1 within the limit" in said
    assert "at most 0.1 % more" in words.to_ktap(found)
    assert 'type="regression"' in words.to_junit(found)


def test_what_there_was_none_of_fails_however_little_it_is(tmp_path: Path) -> None:
    base = counted(tmp_path, 1, BOTH)
    more = {"before": SLOW, "published": {**FAST, "batch": {"instructions": 500, "fences": 1}}}
    found = gate_counts(counted(tmp_path, 2, more), base, 5)
    assert [case.reason for case in found.cases if case.word == "fail"] == [
        "+0.01 fences a page, most in batch()"
    ]


def test_a_timed_run_is_no_baseline_for_counts(tmp_path: Path) -> None:
    timed, its = made(tmp_path, 1), counted(tmp_path, 2, BOTH)
    with pytest.raises(BadUsage, match="counted nothing"):
        gate_counts(its, timed, 0.1)
    with pytest.raises(BadUsage, match="its own baseline"):
        gate_counts(its, its, 0.1)
    with pytest.raises(BadUsage, match="neither run has it"):
        gate_counts(its, counted(tmp_path, 3, BOTH), 0.1, variants=["theirs"])


CLASSES = {
    "locked": 1,
    "streaming": 2,
    "fence": 4,
    "prefetch": 8,
    "jump": 16,
    "conditional": 32,
    "rep": 64,
    "call": 16 + 128,
    "return": 16 + 256,
    "jump by memory": 16 + 512,
    "call by memory": 16 + 128 + 512,
}
KINDS = {
    "lock addl $1, (%rax)": "locked",
    "lock cmpxchg16b %gs:(%r9)": "locked",
    "xchg %rbx, (%rax)": "locked",
    "xchg %rbx, %rcx": None,
    "xchg %bl, 8(%rax)": "locked",
    "movnti %eax, (%rdx)": "streaming",
    "movntdq %xmm1, (%rdx)": "streaming",
    "vmovntdq %ymm1, (%rdx)": "streaming",
    "vmovntps %ymm9, (%r12)": "streaming",
    "vmovntdq %zmm17, (%rdx)": "streaming",
    "movdir64b (%rax), %rdi": "streaming",
    "movdiri %rax, (%rdi)": "streaming",
    "movntdqa (%rdx), %xmm1": None,
    "vpaddd %ymm1, %ymm2, %ymm3": None,
    "mfence": "fence",
    "lfence": "fence",
    "sfence": "fence",
    "ldmxcsr (%rax)": None,
    "clwb (%rax)": None,
    "prefetchw 64(%rax)": "prefetch",
    "prefetchnta (%rax)": "prefetch",
    "nopl 64(%rax)": None,
    "jmp *%rax": "jump",
    "jmp *8(%rax)": "jump by memory",
    "call *8(%rax)": "call by memory",
    "call *%rdx": "call",
    "call .": "call",
    "jmp .": "jump",
    "jne .": "conditional",
    "loop .": "conditional",
    "ret": "return",
    "rep movsq": "rep",
    "rep stosb": "rep",
    "movsq": None,
    "push (%rax)": None,
    "notrack jmp *%rax": "jump",
    "addl $1, %fs:(%rax)": None,
    "movzbl (%rax), %ecx": None,
    "setne %al": None,
    "cmovne (%rax), %rcx": None,
    "popcnt (%rax), %rcx": None,
}


@pytest.fixture(scope="module")
def classified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that prints the class of each line of code in hexadecimal digits."""
    work = tmp_path_factory.mktemp("classify")
    sources = (Path(__file__).parent / "classify_main.c", NATIVE / "count" / "classify.c")
    words = ("gcc", "-O1", *map(str, sources))
    run(Command((*words, "-o", str(work / "classify")), work, 60))
    return work / "classify"


def test_instructions_are_what_the_assembler_made_them(classified: Path, tmp_path: Path) -> None:
    source = tmp_path / "code.s"
    source.write_text("".join(f"{text}\n" for text in KINDS))
    run(Command(("as", str(source), "-o", str(tmp_path / "code.o")), tmp_path, 60))
    listing = run(Command(("objdump", "-d", "-w", str(tmp_path / "code.o")), tmp_path, 60))
    code = [line.split("\t")[1].replace(" ", "") for line in listing.splitlines() if "\t" in line]
    assert len(code) == len(KINDS)
    said = subprocess.run(
        [classified], input="\n".join(code), capture_output=True, text=True, check=True, timeout=60
    )
    names = {value: name for name, value in CLASSES.items()} | {0: None}
    found = [names[int(line)] for line in said.stdout.splitlines()]
    assert dict(zip(KINDS, found, strict=True)) == KINDS


@pytest.mark.parametrize(
    ("per", "number", "said"),
    [
        ("call", 1, "a call"),
        ("page", 1, "for each of 1 page"),
        ("entry", 1, "for each of 1 entry"),
        ("entry", 4096, "for each of 4,096 entries"),
    ],
)
def test_what_averages_are_of_is_said_in_english(per: str, number: int, said: str) -> None:
    assert unit_words(per, number) == said
