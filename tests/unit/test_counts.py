# SPDX-License-Identifier: GPL-2.0-only
"""Counts: what is said of them for each page, where they differ, and the gate that holds them."""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from ream.command import Command, run
from ream.errors import BadUsage
from ream.gate import words
from ream.gate.counts import gate_counts
from ream.kernel.arch import ARM64
from ream.measure.sample import Sample
from ream.paths import MARKS, NATIVE
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
    assert "technique: copy() -30.00 instr -4.00 locked; batch() +5.00 instr; free() -3.00" in text
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


def test_a_variant_that_this_run_did_not_count_is_told_from_a_row_that_it_has_not(
    tmp_path: Path,
) -> None:
    found = gate_counts(counted(tmp_path, 2, {"before": SLOW}), counted(tmp_path, 1, BOTH), 0.1)
    words = {case.variant: (case.word, case.reason) for case in found.cases}
    assert words == {
        "before": ("pass", "counts equal"),
        "published": ("inconclusive", "not counted in this run: it has no such variant"),
    }


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
    "exclusive": 1024,
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
ARM64_KINDS = {
    "ldadd w1, w2, [x3]": "locked",
    "ldaddal x1, x2, [x3]": "locked",
    "stset x1, [x2]": "locked",
    "ldclrb w1, w2, [x3]": "locked",
    "swpal x1, x2, [x3]": "locked",
    "cas x1, x2, [x3]": "locked",
    "casal w1, w2, [x3]": "locked",
    "caspal x0, x1, x2, x3, [x4]": "locked",
    "ldapr x1, [x2]": None,
    "ldr x1, [x2, x3]": None,
    "ldxr x1, [x2]": None,
    "ldaxp x1, x2, [x3]": None,
    "stxr w1, x2, [x3]": "exclusive",
    "stlxrb w1, w2, [x3]": "exclusive",
    "stlxp w1, x2, x4, [x3]": "exclusive",
    "ldar x1, [x2]": None,
    "stlr x1, [x2]": None,
    "stnp x1, x2, [x3]": "streaming",
    "stnp q1, q2, [x3]": "streaming",
    "ldnp x1, x2, [x3]": None,
    "stp x1, x2, [x3]": None,
    "stp x1, x2, [x3], #16": None,
    "dmb ish": "fence",
    "dsb ishst": "fence",
    "isb": "fence",
    "clrex": None,
    "prfm pldl1keep, [x1, #64]": "prefetch",
    "prfm pstl1strm, [x1, x2]": "prefetch",
    "prfum pldl1keep, [x1, #-8]": "prefetch",
    "b .": "jump",
    "br x1": "jump",
    "bl .": "call",
    "blr x1": "call",
    "ret": "return",
    "b.ne .": "conditional",
    "cbz x1, .": "conditional",
    "tbnz x1, #3, .": "conditional",
    "nop": None,
    "hint #0x50": None,
    "hint #0x51": None,
    "hint #0x52": None,
    "hint #0x53": None,
    "hint #0x54": None,
    "hint #0x55": None,
    "hint #0x60": None,
    "dc zva, x1": None,
    "mrs x1, sp_el0": None,
    "movi v0.2d, #0": None,
    "str q0, [x1]": None,
    "csel x1, x2, x3, ne": None,
}


@pytest.fixture(scope="module")
def classified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that prints the class of each line of code in hexadecimal digits."""
    work = tmp_path_factory.mktemp("classify")
    own = (NATIVE / "count" / f"{name}.c" for name in ("x86_64", "arm64"))
    sources = (Path(__file__).parent / "classify_main.c", *own)
    words = ("gcc", "-O1", f"-I{MARKS.parent}", *map(str, sources))
    run(Command((*words, "-o", str(work / "classify")), work, 60))
    return work / "classify"


def classes(program: Path, tools: str, target: str, kinds: Iterable[str], work: Path) -> list[str]:
    """What the program says of each line of assembly: its class and the mark that it is."""
    source = work / "code.s"
    lines = list(kinds)
    source.write_text("".join(f"{text}\n" for text in lines))
    run(Command((f"{tools}as", str(source), "-o", str(work / "code.o")), work, 60))
    listing = run(Command((f"{tools}objdump", "-d", "-w", str(work / "code.o")), work, 60))
    words = [line.split("\t")[1].split() for line in listing.splitlines() if "\t" in line]
    # objdump writes a word of arm64 as the number that it is.
    swapped = target == "aarch64"
    text = ["".join(word if not swapped else bytes.fromhex(word[0])[::-1].hex()) for word in words]
    assert len(text) == len([line for line in lines if not line.startswith(".")])
    said = subprocess.run(
        [program, target],
        input="\n".join(text),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return said.stdout.splitlines()


def named_classes(said: list[str]) -> list[str | None]:
    names = {value: name for name, value in CLASSES.items()} | {0: None}
    return [names[int(line.split()[0])] for line in said]


def test_instructions_are_what_the_assembler_made_them(classified: Path, tmp_path: Path) -> None:
    found = named_classes(classes(classified, "", "x86_64", KINDS, tmp_path))
    assert dict(zip(KINDS, found, strict=True)) == KINDS


def test_instructions_of_arm64_are_what_the_assembler_made_them(
    classified: Path, tmp_path: Path
) -> None:
    if shutil.which("aarch64-linux-gnu-as") is None:
        pytest.skip("aarch64-linux-gnu-as: not installed")
    said = classes(
        classified, ARM64.cross, "aarch64", (".arch armv8.5-a+rng", *ARM64_KINDS), tmp_path
    )
    found = named_classes(said)
    assert dict(zip(ARM64_KINDS, found, strict=True)) == ARM64_KINDS
    marks = {line: int(one.split()[1]) for line, one in zip(ARM64_KINDS, said, strict=True)}
    assert {line: mark for line, mark in marks.items() if mark} == {
        "hint #0x50": 1,
        "hint #0x51": 2,
        "hint #0x52": 3,
        "hint #0x53": 4,
        "hint #0x54": 5,
        "hint #0x55": 6,
    }


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
