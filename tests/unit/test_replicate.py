# SPDX-License-Identifier: GPL-2.0-only
"""Published tables against records that exist: no line is lost, and no verdict is kinder here."""

import re
from collections import Counter
from dataclasses import replace

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from ream.cli.replicate import _exit as end
from ream.errors import BadUsage
from ream.experiment import BEFORE, Experiment, named
from ream.folders import names
from ream.measure.statistics import Estimate
from ream.measure.verdict import Verdict, control, judge, judge_no_gain
from ream.published import Table, load_tables, lookup
from ream.record.record import Record
from ream.replicate.contract import to_object
from ream.replicate.outcome import JudgedRecord, Replication, one_machine, replicate_all
from ream.replicate.render import line_label, render, verdict_words
from ream.replicate.rule import WORDS, Judged, table_word
from ream.replicate.why import NOT_SAID, bound, differences
from ream.report.contract import Ratio
from ream.stage.accel import is_of_kvm
from shipped import RECORDS, SHIPPED

TABLES = load_tables()
NO_KVM = "there is no /dev/kvm"
NO_GUESTS = f"guests under KVM are needed, and do not run here: {NO_KVM}"


@pytest.fixture(scope="module")
def experiments() -> list[Experiment]:
    return [named(name) for name in names()]


@pytest.fixture(scope="module")
def sources() -> list[JudgedRecord]:
    # Of the machine that most kept records are of: those of several are never replicated together.
    every = [JudgedRecord.of(Record.load(str(path), RECORDS)) for path in SHIPPED]
    kinds = [(one.machine.cpu, one.machine.nr_cpus) for one in every]
    ((most, _),) = Counter(kinds).most_common(1)
    return [one for one, kind in zip(every, kinds, strict=True) if kind == most]


@pytest.fixture(scope="module")
def replications(experiments, sources) -> dict[str, Replication]:
    return {one.table.id: one for one in replicated(TABLES, sources, experiments)}


def replicated(tables, sources, experiments, failed=None) -> tuple[Replication, ...]:
    return replicate_all(
        tables,
        sources,
        experiments,
        max(sources, key=lambda source: source.name).machine,
        absent={"vm": NO_GUESTS},
        failed=failed or {},
    )


def estimate(value) -> Estimate:
    return Estimate(value.ratio, value.low, value.high, (value.ratio,))


def verdicts(replication: Replication) -> list[str | None]:
    return [line.verdict and line.verdict.word for line in replication.lines]


# --- nothing is lost ------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.id)
def test_every_line_of_every_table_has_a_verdict_or_is_what_others_are_compared_with(
    table: Table, replications
) -> None:
    lines = replications[table.id].lines
    assert {tuple(line.claim.line.params.items()) for line in lines} == {
        tuple(row.params.items()) for row in table.rows
    }
    for line in lines:
        assert (line.verdict is None) == line.claim.is_base
        if line.verdict is not None:
            assert line.verdict.word in WORDS
            assert line.verdict.reason


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.id)
def test_every_line_stands_in_the_text_and_in_the_object(table: Table, replications) -> None:
    one = replications[table.id]
    text = " ".join(render([one]).split())
    for line in one.lines:
        assert " ".join(line_label(line.claim).split()) in text
    told = to_object([one])["tables"][0]
    assert [line["params"] for line in told["lines"]] == [
        dict(line.claim.line.params) for line in one.lines
    ]
    assert sum(told["counts"].values()) == sum(v is not None for v in verdicts(one))


def test_the_same_records_give_the_same_bytes_in_any_order(experiments, sources) -> None:
    one = replicated(TABLES, sources, experiments)
    other = replicated(TABLES, sources[::-1], experiments)
    assert render(one) == render(other)
    assert to_object(one) == to_object(other)


def test_the_text_is_plain_and_narrower_than_100_columns(replications) -> None:
    text = render(list(replications.values()))
    assert text.isascii()
    assert max(map(len, text.splitlines())) < 100


def test_what_was_measured_among_much_noise_is_not_wider(replications) -> None:
    one = replications["fork-pte-batch-v3"]
    lines = []
    for line in one.lines:
        assert line.row is not None
        floor = Ratio(ratio=1.0, low=0.005, high=197.0)
        row = line.row.model_copy(update={"floor": floor, "whole": None})
        lines.append(replace(line, row=row, verdict=Verdict("inconclusive", "noise")))
    text = render([replace(one, lines=tuple(lines))])
    assert text.count("] >999% ") == len(lines)
    assert text.count("inconclusive a\n") + text.count("undecided a\n") == len(lines)
    assert max(map(len, text.splitlines())) < 100


def test_without_records_every_line_says_why(experiments, sources) -> None:
    machine = sources[0].machine
    for one in replicate_all(TABLES, [], experiments, machine, absent={}, failed={}):
        assert one.word == "not-run"
        assert one.sources == ()
        assert set(verdicts(one)) <= {None, "not-run"}


# --- and no verdict changes -----------------------------------------------------------------


def test_a_line_is_judged_by_the_rule_of_today_on_the_numbers_of_its_record(replications) -> None:
    table = replications["zone-device-v4"]
    assert any(line.row is not None for line in table.lines)
    for line in table.lines:
        if not line.tried or line.ratio is None or line.floor is None:
            continue
        own = judge(estimate(line.ratio), estimate(line.floor), line.claim.printed.ratio)
        assert line.verdict == own


def test_a_table_that_no_row_names_is_judged_by_the_rows_of_its_form(replications) -> None:
    v3, v4 = replications["zone-device-v3"], replications["zone-device-v4"]
    rows = [line.row and line.row.row for line in v3.lines]
    assert rows == [line.row and line.row.row for line in v4.lines]
    assert "fsdax-100GB" in rows
    # Not the record's verdict, which is on other numbers, but one on its own.
    rebind = v3.lines[1]
    assert rebind.claim.printed.published == 114.31
    assert rebind.ratio is not None
    assert rebind.floor is not None
    own = judge(estimate(rebind.ratio), estimate(rebind.floor), 114.31 / 273.52)
    assert rebind.verdict == own


def test_the_verdict_on_one_ratio_is_not_taken_for_that_on_another(experiments, sources) -> None:
    popple = lookup(TABLES, "zone-device-private-popple")  # its source printed ratios alone
    row_of = "private-64GB"
    native = next(
        one
        for one in sources
        if "zone-device-native" in one.name and row_of in {row.row for row in one.summary.rows}
    )
    rows = [
        row.model_copy(
            update={"published_table": row.published_table.model_copy(update={"verdict": "agrees"})}
        )
        if row.row == row_of and row.published_table is not None
        else row
        for row in native.summary.rows
    ]
    source = replace(native, summary=native.summary.model_copy(update={"rows": tuple(rows)}))

    def verdict(published: float) -> Verdict | None:
        lines = [row.model_copy(update={"values": {"published": published}}) for row in popple.rows]
        other = popple.model_copy(
            update={"id": "other", "approximate": False, "rows": tuple(lines)}
        )
        (one,) = replicated([other], [source], experiments)
        found = next(line for line in one.lines if line.row is not None)
        assert found.row is not None
        assert found.ratio is not None
        assert found.floor is not None
        own = judge(estimate(found.ratio), estimate(found.floor), published)
        assert found.verdict == own
        return found.verdict

    assert verdict(1.03).word == "contradicts"  # and not `agrees`, as that record is made to say
    assert verdict(0.2).word == "weaker"


def test_times_of_an_emulated_cpu_are_not_shown_beside_published_ones(experiments, sources) -> None:
    # Those of a native record of the same rows would be: only the guests' are given here.
    emulated = [one for one in sources if one.emulated and one.summary.experiment == "compact"]
    assert emulated
    (compact,) = replicated([lookup(TABLES, "compact-dma")], emulated, experiments)
    assert all(line.here(BEFORE) is None and line.ratio is None for line in compact.lines)
    told = {line.verdict.reason for line in compact.lines if line.would_try == "dma"}
    assert told == {NO_GUESTS}


def test_a_line_with_more_threads_than_cpus_says_so(replications) -> None:
    skylake = replications["deferred-init-skylake"]
    line = next(
        one
        for one in skylake.lines
        if one.claim.printed.threads == 52 and one.claim.value == "init_ms"
    )
    assert line.verdict is not None
    assert line.would_try is not None
    assert "52" in line.would_try
    lacking = f"52 CPUs are needed, {skylake.machine.nr_usable_cpus} are here"
    assert line.verdict.reason.startswith(lacking)
    text = " ".join(render([skylake]).split())
    assert re.search(rf"its rows? [^:]*\b{line.would_try}\b[^:]*: {lacking}", text)


def test_a_quantity_of_the_vm_stage_says_why_there_are_no_guests(replications) -> None:
    zen = replications["deferred-init-zen-guest-4cpu"]
    (line,) = (
        line
        for line in zen.lines
        if line.claim.value == "boot_ms" and line.claim.printed.threads == 1
    )
    assert line.verdict is not None
    assert line.verdict.reason == NO_GUESTS
    assert line.would_try is not None
    assert line.would_try.startswith("vm-boot-16g")


def test_a_line_with_rows_in_several_stages_gives_the_reason_of_the_best_one(replications) -> None:
    popple = replications["zone-device-private-popple"]
    for line in popple.lines:
        assert line.verdict is not None
        assert line.would_try == "private-memremap"
        assert line.verdict.reason.startswith(
            f"{NO_GUESTS}; the numbers beside it are of private-64GB: the source timed"
        )


def test_records_of_emulated_guests_say_themselves_why_there_are_no_times(
    experiments, sources
) -> None:
    vm = [one for one in sources if one.summary.stage == "vm" and one.emulated]
    for one in replicate_all(TABLES, vm, experiments, vm[0].machine, absent={}, failed={}):
        for line in one.lines:
            if line.row is not None and line.row.row == line.would_try:
                assert line.verdict is not None
                assert "do not run here: a guest does not come up under kvm" in line.verdict.reason


def test_what_somebody_asked_for_is_no_reason_against_kvm(experiments, sources) -> None:
    tried = next(one for one in sources if one.emulated and is_of_kvm(one.guest_reason))
    asked = replace(tried, guest_reason="asked for")
    arm64 = replace(tried, guest_reason="guests of arm64 are emulated")
    every = replicate_all(
        TABLES, [tried, asked, arm64], experiments, tried.machine, absent={}, failed={}
    )
    reasons = {line.verdict.reason for one in every for line in one.lines if line.verdict}
    assert any("a guest does not come up under kvm" in reason for reason in reasons)
    assert not any("asked for" in reason or "guests of arm64" in reason for reason in reasons)


def test_a_run_that_failed_gives_its_reason_to_its_lines(experiments, sources) -> None:
    fork = lookup(TABLES, "fork-pte-batch-v3")
    others = [source for source in sources if source.summary.experiment != "fork"]
    (one,) = replicated([fork], others, experiments, failed={("fork", "native"): "no compiler"})
    assert {line.verdict.reason for line in one.lines if line.verdict} == {
        "its run in the native stage ended without a record: no compiler"
    }


def test_a_run_that_was_tried_and_failed_is_said_before_a_stage_that_is_absent(
    experiments, sources
) -> None:
    v4 = lookup(TABLES, "zone-device-v4")
    others = [source for source in sources if source.summary.experiment != "zone-device"]
    (one,) = replicated([v4], others, experiments, failed={("zone-device", "native"): "no room"})
    rebind = one.lines[1]
    assert rebind.verdict is not None
    assert rebind.would_try == "fsdax-100GB"
    assert rebind.verdict.reason.endswith("ended without a record: no room")


def test_records_of_two_machines_are_refused(sources) -> None:
    one_machine(sources)
    other = sources[1].machine.model_copy(update={"cpu": "another"})
    mixed = [
        sources[0],
        JudgedRecord(sources[1].summary, other, "6.12", emulated=False, guest=None),
    ]
    with pytest.raises(BadUsage, match="records of several machines"):
        one_machine(mixed)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["agrees", "contradicts", "inconclusive"], 1),
        (["agrees", "inconclusive", "not-run"], 4),
        (["not-run", "not-run"], 3),
    ],
)
def test_the_exit_code_is_that_of_the_worst_word(words, code) -> None:
    with pytest.raises(typer.Exit) as ended:
        end(words)
    assert ended.value.exit_code == code


@pytest.mark.parametrize("words", [["agrees"], ["weaker", "not-run"], ["stronger", "agrees"]])
def test_what_holds_as_far_as_it_could_be_tried_ends_well(words) -> None:
    end(words)


@pytest.mark.parametrize("machine", [None, 7, {}, {"cpu": 3}])
def test_a_receipt_without_a_machine_is_refused_by_name(machine, tmp_path) -> None:
    path = SHIPPED[0]
    good = Record.load(str(path), RECORDS)
    damaged = Record(tmp_path, good.run, {**good.receipt, "machine": machine})
    with pytest.raises(BadUsage, match="machine"):
        JudgedRecord.of(damaged)


def test_a_cpu_thread_is_never_said_to_contradict_a_device(experiments, sources) -> None:
    with_threads = [source for source in sources if source.name.endswith("migrate-native-950f")]
    table = lookup(TABLES, "migrate-offload-v4")
    (migrate,) = replicated([table], with_threads, experiments)
    measured = [line for line in migrate.lines if line.ratio is not None]
    decided = {line.verdict.word for line in measured if line.verdict}
    assert decided <= {"inconclusive", "not-run"}
    assert "a CPU thread stands in for the device" in " ".join(render([migrate]).split())


# --- why ------------------------------------------------------------------------------------


def test_a_published_gain_above_what_the_limit_allows_is_said(replications) -> None:
    v4 = replications["zone-device-v4"]
    text = " ".join(render([v4]).split())
    told = 0
    for line in v4.lines:
        its, gain = bound(line), line.gain_published
        if its is None or its.most is None or gain is None:
            continue
        assert its.most == pytest.approx(1 / its.of_limit)
        said = (
            f"beyond {line_label(line.claim)}: {gain:.2f}x is published; before is at "
            f"{its.of_limit:.2f} of the limit here, so no more than {its.most:.2f}x can be gained"
        )
        assert (said in text) == (1 / (its.of_limit_low or 0) < gain)
        told += said in text
    assert told


def test_a_gain_that_the_interval_of_the_limit_allows_is_not_called_impossible(
    replications,
) -> None:
    its = bound(replications["zone-device-v4"].lines[1])
    assert its is not None
    its = replace(its, of_limit=0.5, of_limit_low=0.4, found=1.5)
    assert its.most == 2
    assert its.excludes(2.6)
    assert not its.excludes(2.4)
    assert not replace(its, of_limit_low=None).excludes(9.9)  # of one launch


def test_a_clock_that_a_row_of_ours_names_is_not_said_to_be_unknown(replications) -> None:
    said = {one.what: one for one in differences(replications["deferred-init-skylake"])}
    assert said["timer"].there == "jiffies"
    said = {one.what: one for one in differences(replications["fork-pte-batch-v3"])}
    assert said["timer"].there == NOT_SAID


# --- one word for a table -------------------------------------------------------------------

JUDGED = st.builds(
    Judged,
    st.sampled_from(WORDS),
    st.one_of(st.none(), st.floats(0.3, 3.0)),
    st.one_of(st.none(), st.floats(0.3, 3.0)),
)


@given(st.lists(JUDGED))
def test_a_table_is_as_good_as_its_weakest_line(lines) -> None:
    word = table_word(lines)
    claimed = {line.word for line in lines if line.substantial} - {"not-run"}
    if "contradicts" in claimed:
        assert word == "contradicts"
    deciding = [line for line in lines if line.substantial] or lines
    tried = {line.word for line in deciding} - {"not-run"}
    if not tried:
        assert word == "not-run"
    if tried == {"modelled"}:
        assert word == "modelled"
    untried = sum(line.word == "not-run" for line in deciding)
    if word in ("agrees", "stronger", "weaker"):
        assert 2 * untried <= len(deciding)
    if word in ("agrees", "stronger"):
        assert not claimed & {"contradicts", "inconclusive", "weaker"}
    if word == "agrees":
        assert not any(line.is_larger_cost for line in deciding)
    assert table_word(lines[::-1]) == word


def test_the_word_of_a_table_is_that_of_the_lines_that_claim_something() -> None:
    fine, null = Judged("agrees", 0.7, 0.7), Judged("agrees", 1.0, 1.01)
    assert table_word([Judged("not-run", 0.7, None), null]) == "not-run"
    assert table_word([fine, Judged("contradicts", 0.98, 1.03)]) == "agrees"
    assert table_word([fine, Judged("contradicts", 0.98, 1.2)]) == "agrees"
    assert table_word([fine, Judged("contradicts", 0.7, 1.03)]) == "contradicts"
    assert table_word([fine, Judged("weaker", 0.7, 0.9)]) == "weaker"
    assert table_word([Judged("stronger", 0.7, 0.5), fine]) == "agrees"
    assert table_word([Judged("stronger", 0.7, 0.5)]) == "stronger"


def test_few_of_a_tables_claims_can_refute_it_but_not_support_it() -> None:
    """What was not measured may be what does not hold."""
    lost = [Judged("not-run", 0.7, None)] * 2
    fine, null = Judged("agrees", 0.7, 0.7), Judged("agrees", 1.0, 1.01)
    for word in ("agrees", "stronger", "weaker"):
        assert table_word([Judged(word, 0.7, 0.5), *lost]) == "inconclusive"
    assert table_word([Judged("contradicts", 0.7, 1.2), *lost]) == "contradicts"
    assert table_word([fine, fine, *lost]) == "agrees"
    assert table_word([fine, *lost, null, null]) == "inconclusive"


def test_a_cost_that_is_larger_here_is_no_agreement() -> None:
    fine, cost = Judged("agrees", 0.7, 0.7), Judged("stronger", 1.13, 1.73)
    assert table_word([fine, cost]) == "stronger"
    assert table_word([fine, cost, Judged("weaker", 0.7, 0.9)]) == "weaker"


def test_a_modelled_line_decides_nothing_beside_one_that_is_measured() -> None:
    model, fine = Judged("modelled", 0.5, 0.1), Judged("agrees", 0.7, 0.7)
    assert table_word([model, fine]) == "agrees"
    assert table_word([model, Judged("not-run", 0.7, None)]) == "modelled"


def test_a_table_that_claims_no_effect_is_judged_by_its_lines() -> None:
    null = Judged("agrees", 1.0, 1.01)
    assert table_word([null]) == "agrees"
    undecided = [Judged("not-run", 1.0, None), Judged("contradicts", 0.98, 1.03)]
    assert table_word(undecided) == "inconclusive"
    assert table_word([Judged("contradicts", 1.0, 0.6), null]) == "contradicts"
    assert table_word([Judged("not-run", 1.0, None)]) == "not-run"


@pytest.mark.parametrize(
    ("word", "here", "came"),
    [
        ("agrees", 0.97, "as published"),
        ("weaker", None, "as published"),  # of a quantity that is no time
        ("weaker", 1.02, "as published"),
        ("contradicts", 1.03, "as published"),  # the other sign, but of nothing
        ("contradicts", 1.2, "not as published"),
        ("stronger", 0.6, "not as published"),
        ("inconclusive", 0.97, "undecided"),
        ("not-run", None, "not tried"),
    ],
)
def test_a_control_holds_if_less_than_10_percent_is_measured(word, here, came) -> None:
    assert control(word, here) == came


def test_a_table_of_which_only_a_null_line_was_tried_says_not_run_and_its_control_apart(
    replications,
) -> None:
    skylake = replications["deferred-init-skylake"]
    assert skylake.word == "not-run"
    assert verdict_words(skylake) == (
        "not-run: 12 not-run; none of 12 that claim 10 % or more could be tried; "
        "controls: 1 of 1 as published, 1 not tried"
    )
    told = to_object([skylake])["tables"][0]
    assert told["verdict"] == "not-run"
    assert told["controls"] == {
        "as published": 1, "not as published": 0, "undecided": 0, "modelled": 0, "not tried": 1,
    }  # fmt: skip
    assert [line["control"] for line in told["lines"][2:5]] == ["not tried", "as published", None]


def test_a_table_with_too_few_lines_says_on_how_many_of_them_it_rests(replications) -> None:
    zen = replications["deferred-init-zen-guest-16cpu"]
    assert "1 of 12 that claim 10 % or more could be tried, fewer than half" in verdict_words(zen)
    told = to_object([zen])["tables"][0]
    assert zen.word == told["verdict"] == "inconclusive"
    assert "because 1 of 12 claims could be tried (1 agrees)" in told["fair"]


def test_a_control_that_fails_is_said_and_is_not_the_word_of_the_table(replications) -> None:
    every = replications["deferred-init-zen-guest-4cpu"]
    lines = (line for line in every.lines if line.tried or line not in every.deciding)
    zen = replace(every, lines=tuple(lines))
    other = failing(zen, [line for line in zen.controls if line.tried])
    assert other.word == zen.word == "agrees"
    assert "controls: 0 of 1 as published, 1 not as published" in verdict_words(other)


def test_a_table_of_three_kernels_says_that_it_compares_no_two(replications) -> None:
    phases = replications["mprotect-shared-dirty-metal-phases"]
    words = "none of its lines compares technique with before"
    assert verdict_words(phases) == f"not-run: {words}"


def test_a_long_name_of_a_table_is_not_run_into_its_verdict(replications) -> None:
    said = render(list(replications.values()))
    short = said.removeprefix("in short\n").partition("\n\n")[0]
    names = [line.split()[0] for line in short.splitlines() if line[:3].strip()]
    once = [*filter("once".__ne__, names)]
    assert once == [one.table.id for one in replications.values()]


def test_of_many_tables_the_verdicts_come_first_and_the_rest_is_asked_for(replications) -> None:
    every = list(replications.values())
    said = render(every, rows=False)
    assert said.startswith("in short\n")
    assert all(one.table.id in said for one in every)
    assert "why it may differ" not in said
    assert said.count("\n") < len(every) * 3 < render(every).count("\n")
    (alone,) = (one for one in every if one.table.id == "fork-pte-batch-v3")
    lines = render([alone], rows=False).splitlines()
    found = next(number for number, line in enumerate(lines) if line.startswith("verdict"))
    assert found < 5
    assert all(line_label(one.claim) in "\n".join(lines) for one in alone.lines)


def failing(one: Replication, which) -> Replication:
    """The same, but that these lines are contradicted by a loss of 40 %."""
    lines = []
    for line in one.lines:
        if line in which:
            variants = dict(line.row.variants)
            variants["published"] = variants["published"].model_copy(update={"ratio": 1.4})
            row = line.row.model_copy(update={"variants": variants})
            line = replace(line, verdict=Verdict("contradicts", "a lot"), row=row)  # noqa: PLW2901
        lines.append(line)
    return replace(one, lines=tuple(lines))


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (0.97, 1.02, "agrees"),
        (0.85, 1.02, "inconclusive"),
        (0.5, 1.5, "inconclusive"),
        (0.6, 0.8, "contradicts"),
        (1.2, 1.3, "contradicts"),
        (None, None, "inconclusive"),
    ],
)
def test_no_gain_is_agreed_with_only_where_a_gain_is_excluded(low, high, word) -> None:
    assert judge_no_gain(Estimate(1.0, low, high, (1.0,))).word == word
