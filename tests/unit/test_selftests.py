# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's own tests: the list, what the console says of them, base against series."""

from dataclasses import replace
from pathlib import Path

import pytest

from ream.errors import BadUsage, ReamError
from ream.stage.selftests import (
    SELFTESTS,
    Selftests,
    differences,
    read_selftests,
    results,
    shared_sources,
)

KUNIT = """\
Linux version 6.12.117
[    0.500000] KTAP version 1
[    0.500001] 1..1
[    0.500002]     KTAP version 1
[    0.500003]     # Subtest: memcpy
[    0.500004]     # module: memcpy_kunit
[    0.500005]     1..3
[    0.600000]     ok 1 memset_test
[    0.600001]     # memcpy_large_test: ok: memcpy() static initializers
[    0.700000]     # memcpy_test: EXPECTATION FAILED at lib/memcpy_kunit.c:99
[    0.700001]     not ok 2 memcpy_test
[    0.700002]     ok 3 memcpy_large_test # SKIP too slow here
[    0.700003] # memcpy: pass:1 fail:1 skip:1 total:3
[    0.700004] # Totals: pass:1 fail:1 skip:1 total:3
[    0.700005] not ok 1 memcpy
"""

HARNESS = """\
[    1.500000] TAP version 13
[    1.500001] 1..3
[    1.500002] # Starting 3 tests from 2 test cases.
[    1.500003] #  RUN           hmm.hmm_device_private.open_close ...
[    1.500004] #            OK  hmm.hmm_device_private.open_close
[    1.500005] ok 1 hmm.hmm_device_private.open_close
[    1.510000] HMM test module loaded. This is only for testing HMM.
[    1.600000] # hmm-tests.c:155:open_close:Expected self->fd (-1) >= 0 (0)
[    1.600001] not ok 2 hmm.hmm_device_coherent.open_close
[    1.700001] ok 3 hmm.hmm_device_coherent.migrate # SKIP DEVICE_COHERENT not available
[    1.800000] # Totals: pass:1 fail:1 xfail:0 xpass:0 skip:1 error:0
"""

LIST = Selftests(
    modules=("kunit", "memcpy_kunit"),
    programs=("tools/testing/selftests/mm/hmm-tests",),
    words=(),
    skips={"hmm.hmm_device_coherent.*": "no memory for it"},
    added={"memcpy.memcpy_streaming_*": "the series brings them"},
)


def of(text: str) -> dict[str, str]:
    return results(text.splitlines())


def test_a_test_of_a_suite_is_named_after_it() -> None:
    assert of(KUNIT) == {
        "memcpy.memset_test": "pass",
        "memcpy.memcpy_test": "fail",
        "memcpy.memcpy_large_test": "skip",
        "memcpy": "fail",
    }


def test_a_programs_tests_keep_their_names() -> None:
    assert of(HARNESS) == {
        "hmm.hmm_device_private.open_close": "pass",
        "hmm.hmm_device_coherent.open_close": "fail",
        "hmm.hmm_device_coherent.migrate": "skip",
    }


def test_a_result_that_says_nothing_speaks_against_nobody() -> None:
    unsteady = replace(LIST, unsteady={"hmm.*_coherent.*": "takes too long"})
    base, series = ({"hmm.hmm_device_coherent.migrate": word} for word in ("fail", "pass"))
    added = {"memcpy.memcpy_streaming_test": "pass"}
    assert differences(base, series | added, unsteady) == ()
    assert differences(base, series | added, LIST) != ()


def test_plans_follow_each_other() -> None:
    assert of(KUNIT + HARNESS + KUNIT.replace("memcpy", "string")) == (
        of(KUNIT) | of(HARNESS) | of(KUNIT.replace("memcpy", "string"))
    )


def test_what_init_writes_stands_before_between_and_in_the_middle() -> None:
    init = "KTAP version 1\n1..2\n"
    torn = HARNESS.replace("[    1.500000]", "ok 1 /selftests/te[    1.500000]")
    assert of(init + KUNIT + torn + "st_hmm\nok 2 /selftests/hmm-tests\n") == (
        of(KUNIT) | of(HARNESS)
    )


def test_a_callers_number_and_a_return_are_part_of_no_name() -> None:
    lines = ["[    1.000000][    T1] 1..1\r\n", "[    1.000001][    T1] ok 1 - one\r\n"]
    assert results(lines) == {"one": "pass"}


def test_an_expected_failure_is_none() -> None:
    assert of("[    1.000000] 1..1\n[    1.000001] ok 1 one # XFAIL known\n") == {"one": "pass"}


@pytest.mark.parametrize("cut", [5, 7, 12])
def test_a_console_that_breaks_off_is_no_result(cut: int) -> None:
    with pytest.raises(ReamError, match="gave a result"):
        results(KUNIT.splitlines()[: cut + 1])


def test_a_program_that_breaks_off_before_the_next_is_no_result() -> None:
    cut = "".join(HARNESS.splitlines(keepends=True)[:6])
    with pytest.raises(ReamError, match="1 of 3 tests gave a result"):
        of(cut + KUNIT)


def test_a_result_that_is_missing_between_others_is_noticed() -> None:
    lost = "".join(line for line in KUNIT.splitlines(keepends=True) if "not ok 2" not in line)
    with pytest.raises(ReamError, match="result 3 comes as number 2 of 3"):
        of(lost)


def test_a_result_out_of_nowhere_is_refused() -> None:
    with pytest.raises(ReamError, match="one: a result without a plan"):
        of("[    1.000000] ok 1 one\n")


def test_two_results_of_one_name_are_refused() -> None:
    with pytest.raises(ReamError, match="memset_test: two results"):
        of(KUNIT + KUNIT)


def test_a_program_may_bail_out_when_all_its_tests_have_given_a_result() -> None:
    end = "[    1.000002] Bail out! 1 out of 1 tests failed\n"
    assert of("[    1.000000] 1..1\n[    1.000001] not ok 1 one\n" + end) == {"one": "fail"}


def test_a_program_that_bails_out_is_heard() -> None:
    with pytest.raises(ReamError, match="gave up: Bail out! no device"):
        of("[    1.000000] 1..1\n[    1.000001] Bail out! no device\n")


COW = """\
[    1.000000] # Program: cow
[    1.000001] # [INFO] detected THP size: 64 KiB
[    1.000002] TAP version 13
[    1.000003] 1..4
[    1.000004] # [RUN] Basic COW after fork() ... with base page
[    1.000005] ok 1 No leak from parent into child
[    1.000006] # [RUN] Basic COW after fork() ... with hugetlb (1048576 kB)
[    1.000007] ok 2 # SKIP need more free huge pages
[    1.000008] # [RUN] Basic COW after fork() ... with base page
[    1.000009] ok 3 No leak from parent into child
[    1.000010] not ok 4 Leak from parent into child
[    1.000011] # Program: madv_populate
[    1.000012] 1..1
[    1.000013] ok 1 hole
"""

WITHOUT_PLAN = """\
[    1.000000] # Program: uffd-unit-tests
[    1.000001] Testing UFFDIO_API (with syscall)... done
[    1.000002] Testing move on anon... skipped [reason: feature missing]
[    1.000003] Testing wp-fork on shmem... failed [reason: a bit is lost]
[    1.000004] Userfaults unit tests: pass=1, skip=1, fail=1 (total=3)
[    1.000005] # Program: khugepaged
[    1.000006] Save THP and khugepaged settings... \x1b[32mOK\x1b[0m
[    1.000007]
[    1.000008] Run test: collapse_fork (khugepaged:anon)
[    1.000009] Allocate small page... \x1b[32mOK\x1b[0m
[    1.000010] Share small page over fork()... \x1b[31mFail\x1b[0m
[    1.000011] Check if parent still has small page... \x1b[33mSkip\x1b[0m
[    1.000012]
[    1.000013] Run test: collapse_full (madvise:anon)
[    1.000014] Collapse multiple fully populated PTE table... \x1b[32mOK\x1b[0m
[    1.000015] # Program: mkdirty
[    1.000016] 1..1
[    1.000017] ok 1 PTRACE write access
"""


def test_what_a_program_says_of_itself_is_in_the_names_of_its_tests() -> None:
    basic = "cow.Basic COW after fork() ... with base page"
    assert of(COW) == {
        f"{basic}: No leak from parent into child": "pass",
        "cow.Basic COW after fork() ... with hugetlb (1048576 kB)": "skip",
        f"{basic}: No leak from parent into child (3)": "pass",
        f"{basic}: Leak from parent into child": "fail",
        "madv_populate.hole": "pass",
    }


def test_programs_without_a_plan_are_understood_by_their_words() -> None:
    assert of(WITHOUT_PLAN) == {
        "uffd-unit-tests.UFFDIO_API (with syscall)": "pass",
        "uffd-unit-tests.move on anon": "skip",
        "uffd-unit-tests.wp-fork on shmem": "fail",
        "khugepaged.collapse_fork (khugepaged:anon)": "fail",
        "khugepaged.collapse_full (madvise:anon)": "pass",
        "mkdirty.PTRACE write access": "pass",
    }


def test_a_program_that_breaks_off_is_noticed_when_the_next_begins() -> None:
    cut = "".join(COW.splitlines(keepends=True)[:6])
    with pytest.raises(ReamError, match="1 of 4 tests of cow gave a result"):
        of(cut + WITHOUT_PLAN)


def test_programs_are_compiled_with_what_their_makefile_gives_them(tmp_path: Path) -> None:
    shared = {
        program: [Path(source).name for source in shared_sources(tmp_path, program)]
        for program in ("tools/testing/selftests/mm/cow", "tools/testing/selftests/mm/uffd-x", "/o")
    }
    assert list(shared.values()) == [
        ["vm_util.c", "thp_settings.c"],
        ["vm_util.c", "thp_settings.c", "uffd-common.c"],
        [],
    ]


BASE = {"memcpy.memset_test": "pass", "hmm.hmm_device_coherent.migrate": "skip"}
SERIES = BASE | {"memcpy.memcpy_streaming_test": "pass"}


def test_the_same_results_and_what_the_series_adds_are_fine() -> None:
    assert differences(BASE, SERIES, LIST) == ()


@pytest.mark.parametrize(
    ("base", "series", "said"),
    [
        (BASE, SERIES | {"memcpy.memset_test": "fail"}, "memcpy.memset_test: fails on the series"),
        (
            BASE | {"memcpy.memset_test": "fail"},
            SERIES | {"memcpy.memset_test": "fail"},
            "memcpy.memset_test: fails on the base",
        ),
        (
            BASE,
            SERIES | {"memcpy.memset_test": "skip"},
            "memcpy.memset_test: skipped on the series, and the list gives no reason",
        ),
        (
            BASE,
            SERIES | {"hmm.hmm_device_coherent.migrate": "pass"},
            "hmm.hmm_device_coherent.migrate: skip on the base, pass on the series",
        ),
        (
            BASE | {"hmm.hmm_device_private.compound": "pass"},
            SERIES,
            "hmm.hmm_device_private.compound: the series has lost it",
        ),
        (
            BASE,
            SERIES | {"memcpy.other_test": "pass"},
            "memcpy.other_test: only the series has it, and the list does not say so",
        ),
        (BASE, BASE, "memcpy.memcpy_streaming_*: the series should have it, and has not"),
    ],
)
def test_every_difference_is_said(base: dict[str, str], series: dict[str, str], said: str) -> None:
    assert said in differences(base, series, LIST)


def test_every_fault_of_a_list_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "some.list"
    file.write_text("# a comment\nmodule a - why\nmodule a - why\n\nrun b - why\nskip c\n")
    with pytest.raises(BadUsage) as raised:
        read_selftests(file)
    assert str(raised.value).splitlines() == [
        f"{file}:3: module a: named twice",
        f"{file}:5: run: must be one of module, program, file, word, swap, skip, added, unsteady",
        f"{file}:6: not `KIND VALUE - REASON`: skip c",
    ]


def test_a_reason_may_take_several_lines(tmp_path: Path) -> None:
    file = tmp_path / "some.list"
    file.write_text("skip a.* - it is\n\tnot there\nadded b - new\n")
    selftests = read_selftests(file)
    assert selftests.skips == {"a.*": "it is not there"}
    assert selftests.added == {"b": "new"}


def test_one_device_is_swapped_to(tmp_path: Path) -> None:
    file = tmp_path / "some.list"
    file.write_text("swap /dev/ram0 - room\n")
    assert read_selftests(file).swap == "/dev/ram0"
    file.write_text("swap /dev/ram0 - room\nswap /dev/ram1 - more\n")
    with pytest.raises(BadUsage, match="swap /dev/ram0, /dev/ram1: one device at most"):
        read_selftests(file)


@pytest.mark.parametrize("file", sorted(SELFTESTS.glob("*.list")), ids=lambda file: file.stem)
def test_every_shipped_list_can_be_read(file: Path) -> None:
    assert read_selftests(file).names


def test_the_shipped_list_runs_modules_before_what_needs_them() -> None:
    selftests = read_selftests(SELFTESTS / "zone-device.list")
    paths = list(selftests.paths)
    assert paths.index("/selftests/kunit") < paths.index("/selftests/memcpy_kunit")
    assert paths.index("/selftests/test_hmm") < paths.index("/selftests/hmm-tests")
