# SPDX-License-Identifier: GPL-2.0-only
"""What must be equal for which question: every rule of the table, by what it does."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import pytest

from history_world import kernel, machine, series, unwritten
from ream.compare import facts, pool
from ream.compare.alike import (
    MOST_SAID,
    Difference,
    SeriesIds,
    Thing,
    check,
    check_all,
    differences,
)
from ream.compare.rules import RULES, Question
from ream.errors import BadUsage

FIRST: dict[str, Any] = {
    "row": {"bytes_of": "map"},
    "machine": machine(microcode=1, nr_usable_cpus=2, memory_bytes=1, governor="a", boost=True),
    "guest": {"accel": "kvm", "qemu": "QEMU 7", "cpus": 1},
    "kernel": kernel(tree="6.12"),
}
PARAMS = {"order": 0, "type": "FS_DAX", "nr_pages": 1 << 16}


def of_machine(**changes: Any) -> dict[str, Any]:
    return {"machine": {**FIRST["machine"], **changes}}


def of_guest(**changes: Any) -> dict[str, Any]:
    return {"guest": {**FIRST["guest"], **changes}}


def built(*, ream: Sequence[Mapping[str, Any]], **before: Any) -> dict[str, Any]:
    variants = {"before": [], "published": series("a"), "ream": ream, **before}
    return {"kernel": kernel(tree="6.12", variants=variants)}


def found(question: Question, second: Mapping[str, Any], **first: Any) -> tuple[Difference, ...]:
    one, other = (facts.of_record(unwritten(**{**FIRST, **said})) for said in (first, dict(second)))
    return differences(question, one, other)


# What the second record says otherwise, how it is named, what `compare` and what `pool` make of it.
OF_RECORDS = [
    ({"run": {"experiment": "fork"}}, "experiment: zone-device fork", "refuse", "refuse"),
    ({"run": {"stage": "vm"}}, "stage: native vm", "refuse", "refuse"),
    (of_guest(accel="tcg"), "accelerator: kvm tcg", "refuse", "refuse"),
    ({"row": {"unit": "x", "bytes_of": "map"}}, "unit of fsdax: ns x", "refuse", "refuse"),
    ({"row": {"better": "x", "bytes_of": "map"}}, "better of fsdax: lower x", "refuse", "refuse"),
    ({"row": {"bytes_of": "x"}}, "bytes_of of fsdax: map x", "refuse", "refuse"),
    (
        {"row": {"bytes_of": "map", "params": {**PARAMS, "order": 9}}},
        "order of fsdax: 0 9",
        "refuse",
        "refuse",
    ),
    (
        {"row": {"bytes_of": "map", "params": {**PARAMS, "order": False}}},
        "order of fsdax: 0 False",  # to Python they are equal
        "refuse",
        "refuse",
    ),
    (
        {"benchmark": "ffff"},
        "benchmark: ream's own code that measures has changed (ids: 0123456789ab ffff )",
        "flag",
        "refuse",
    ),
    (
        of_machine(id="other"),
        "machine: Example CPU, 2 CPUs (feedc0ffee00) Example CPU, 2 CPUs (other)",
        "flag",
        None,
    ),
    (of_machine(cpu="Newer"), "CPU: Example CPU Newer", "flag", None),
    (of_machine(microcode=2), "microcode: 1 2", "flag", None),
    (of_machine(nr_usable_cpus=4), "usable CPUs: 2 4", "flag", None),
    (of_machine(memory_bytes=9), "bytes of memory: 1 9", "flag", None),
    (of_machine(governor="b"), "governor: a b", "flag", None),
    (of_machine(boost=1), "boost: True 1", "flag", None),
    (of_machine(kernel="6.13"), "running kernel: 6.12.0 6.13", "flag", None),
    (
        {"kernel": kernel(tree="6.12", tree_key="ef" * 32)},
        "tree: 6.12 (abababababab) 6.12 (efefefefefef)",
        "flag",
        "refuse",
    ),
    ({"kernel": kernel(tree="another name")}, None, None, None),
    ({"kernel": kernel(tree="6.12", compiler="gcc 14")}, "compiler: gcc 12 gcc 14", "flag", "flag"),
    ({"kernel": kernel(tree="6.12", compiler=None)}, "compiler: gcc 12 not said", "flag", "flag"),
    (
        {"kernel": kernel(tree="6.12", config_sha256="00" * 32)},
        "configuration: cdcdcdcdcdcd 000000000000",
        "flag",
        "flag",
    ),
    (built(ream=series("c")), "series of ream: its one patch differs", "flag", "refuse"),
    (built(ream=()), "series of ream: bbbbbbbbbbbb no series", "flag", "refuse"),
    (of_guest(qemu="QEMU 9"), "QEMU: QEMU 7 QEMU 9", "flag", "flag"),
    (of_guest(cpus=2), "CPUs of a guest: 1 2", "flag", "flag"),
    # What is not said, as by an older record, is never taken for the same.
    ({"run": {"rows": [{"row": "fsdax", "params": PARAMS}]}}, None, None, None),
    (
        {"row": {"bytes_of": "map", "params": {**PARAMS, "threads": 2}}},
        "threads of fsdax: not said 2",
        "flag",
        "flag",
    ),
    ({"row": {"bytes_of": "map", "row": "another"}}, None, None, None),
    ({"benchmark": None}, "benchmark: 0123456789ab not said", "flag", "flag"),
    (
        {"machine": {}},  # what else is of the machine is not asked of two
        "machine: Example CPU, 2 CPUs (feedc0ffee00) Example CPU, 2 CPUs (no id)",
        "flag",
        None,
    ),
    ({"kernel": kernel(variants={"mine": series("c")})}, None, None, None),
    ({}, None, None, None),
]


@pytest.mark.parametrize(("second", "said", "compare", "merge"), OF_RECORDS)
def test_what_differs_between_records_is_refused_or_flagged(
    second: Mapping[str, Any], said: str | None, compare: str | None, merge: str | None
) -> None:
    questions: tuple[tuple[Question, str | None], ...] = (("compare", compare), ("pool", merge))
    for question, gravity in questions:
        ones = [
            (one.said("", "").replace(" ,", ""), one.gravity) for one in found(question, second)
        ]
        assert [(text.rstrip(), word) for text, word in ones] == (
            [(said, gravity)] if gravity else []
        )


def test_options_of_a_variant_are_part_of_what_is_compared() -> None:
    one, other = (
        kernel(trees={"distro": {"tree": "6.12", "tree_key": "ab", "config": f"CONFIG_X={value}"}})
        for value in "ym"
    )
    (only,) = found("compare", {"kernel": other}, kernel=one)
    assert only.said("", "").startswith("configuration of distro: ")
    assert only.gravity == "flag"
    assert found("compare", {"kernel": one}, kernel=one) == ()


@pytest.mark.parametrize(
    ("both", "said"),
    [
        ({"benchmark": None}, "benchmark: not said in either"),
        ({"machine": machine(id=None)}, "machine's id: not said in either"),
    ],
)
def test_two_that_do_not_say_are_not_known_to_be_the_same(both: dict[str, Any], said: str) -> None:
    for question in ("compare", "pool"):
        assert [(one.said(), one.gravity) for one in found(question, both, **both)] == [
            (said, "flag")
        ]


def test_a_series_is_the_same_if_its_diffs_are_however_it_was_sent() -> None:
    def sent(letter: str, diff: str | None) -> dict[str, Any]:
        return built(ream=[{**one, "diff_id": diff} for one in series(letter)])

    for one, other, same in (
        (("b", "dd"), ("c", "dd"), True),
        (("b", "dd"), ("b", "ee"), False),
        (("b", "dd"), ("b", None), True),
        (("b", None), ("c", "dd"), False),
    ):
        assert (not found("pool", sent(*one), **sent(*other))) is same


def test_the_patches_in_which_two_series_differ_are_named_by_number() -> None:
    def ids(letters: str) -> SeriesIds:
        return SeriesIds(((letters, None),), tuple((letter, None) for letter in letters))

    for one, other, said in (
        ("abcd", "abxd", "patch 3 of 4 differs"),
        ("abcd", "axcy", "patches 2, 4 of 4 differ"),
        ("abcdefgh", "ABCDEFgh", "6 of 8 differ"),
        ("abcd", "abd", "3 patches of 4 and 3 the same"),
        ("abcd", "", ""),
    ):
        assert ids(one).patches_that_differ(ids(other)) == said


BASIS = {
    "benchmark": "benchmark",
    "machine": "machine",
    "nr_usable_cpus": "usable CPUs",
    "tree_key": "tree",
    "other_trees": "other trees",
    "compiler": "compiler",
    "qemu": "QEMU",
}


@pytest.mark.parametrize("field", BASIS)
def test_a_run_goes_on_where_it_began_or_not_at_all(field: str) -> None:
    now = dict.fromkeys(BASIS, "this") | {"qemu": None}
    (one,) = differences("resume", facts.of_basis({**now, field: "that"}), facts.of_basis(now))
    assert (one.what, one.gravity) == (BASIS[field], "refuse")
    assert one.said("then", "now").startswith(f"{BASIS[field]}: ")
    assert f"that then, {now[field] or 'not said'} now" in one.said("then", "now")
    (gone,) = differences("resume", facts.of_basis({}), {Thing(BASIS[field]): "this"})
    assert gone.refuses


@pytest.mark.parametrize(
    ("question", "thing"),
    [
        ("resume", Thing("guests")),
        ("resume", Thing("series", "ream")),
        ("cell", Thing("version of ream")),
        ("cell", Thing("benchmark")),
        ("cell", Thing("series", "ream")),
        ("cell", Thing("parameter", "fsdax", "order")),
        ("cell", Thing("tree")),
    ],
)
def test_another_plan_is_refused_and_so_is_one_that_does_not_say(
    question: Question, thing: Thing
) -> None:
    for other in ({thing: "that"}, {}):
        with pytest.raises(
            BadUsage, match=rf"^no: {thing}: .*this there, (that|not said) here\)?$"
        ):
            check(question, {thing: "this"}, other, sides=("there", "here"), head="no")


def test_every_rule_is_asked_for_some_question() -> None:
    for name, rule in RULES.items():
        assert any(rule.gravity(question) for question in get_args(Question)), name


def test_what_refuses_comes_first_and_all_of_it_is_said() -> None:
    second = {**of_machine(id="other"), "run": {"stage": "vm"}, "benchmark": "ffff"}
    ones = found("compare", second)
    assert [(one.what, one.refuses) for one in ones] == [
        ("stage", True),
        ("benchmark", False),
        ("machine", False),
    ]


def test_of_many_runs_that_are_not_alike_few_differences_are_named() -> None:
    runs = [(f"run {n}", {Thing("stage"): f"stage {n}"}) for n in range(7)]
    with pytest.raises(BadUsage) as refused:
        check_all("compare", [*runs, *runs], "--force")
    lines = str(refused.value).splitlines()
    assert lines[0] == "run 0 and run 1 are not alike: stage: stage 0 in one, stage 1 in the other"
    assert len(lines) == MOST_SAID + 2
    assert lines[-2:] == ["and 18 more differences of this kind", "--force"]


@pytest.mark.parametrize("benchmarks", [(None, "1111", "2222"), ("1111", None, "2222")])
def test_a_record_that_does_not_say_what_it_is_hides_no_difference(
    benchmarks: Sequence[str | None],
) -> None:
    records = [unwritten(number, benchmark=one) for number, one in enumerate(benchmarks)]
    with pytest.raises(BadUsage, match="(?s)1111 in one, 2222 in the other.*digest.*\nway out"):
        pool.check_poolable(records, "fsdax", "way out")


def test_what_differs_between_records_that_are_pooled_is_noted_once() -> None:
    other = {"kernel": kernel(tree="6.12", compiler="gcc 13"), **of_machine(id=None)}
    records = [unwritten(1), unwritten(2, **other), unwritten(3, **other)]
    assert pool.check_poolable(records, "fsdax", "") == (
        "compiler: gcc 12 in one, gcc 13 in the other",
        "one has no machine id: one machine or two is not known",
    )


@pytest.mark.parametrize(
    ("second", "published", "ream"),
    [
        ({}, None, None),
        ({"benchmark": "ffff"}, "benchmark: ", "benchmark: "),
        (built(ream=series("c")), None, "series of ream: "),
        (built(ream=series("b"), before=series("c")), "series of before: ", "series of before: "),
        ({"kernel": kernel(tree_key="ef" * 32)}, "tree: ", "tree: "),
        ({"kernel": kernel(tree="6.12", compiler="gcc 14")}, None, None),
    ],
)
def test_a_variant_of_other_code_is_not_pooled(
    second: dict[str, Any], published: str | None, ream: str | None
) -> None:
    records = [unwritten(1), unwritten(2, **second)]
    for variant, said in (("published", published), ("ream", ream)):
        why_not = [one.said() for one in pool.why_not_pooled(records, "fsdax", ("before", variant))]
        assert (why_not == []) is (said is None)
        assert all(one.startswith(str(said)) for one in why_not)


@pytest.mark.parametrize(
    ("lines", "ids", "known"),
    [
        (("CPU", "CPU"), ("a", "b"), True),
        (("CPU", "CPU"), (None, None), True),
        (("CPU", "CPU"), (None, "b"), False),
        (("CPU", "Another"), (None, "b"), True),
    ],
)
def test_a_record_without_a_machine_id_may_be_of_a_machine_that_has_one(
    lines: Sequence[str], ids: Sequence[str | None], known: bool
) -> None:
    records = [
        unwritten(number, run={"receipt": {"machine": line}}, machine=machine(id=own))
        for number, (line, own) in enumerate(zip(lines, ids, strict=True))
    ]
    assert (pool.unknown_machine(records) is None) is known
