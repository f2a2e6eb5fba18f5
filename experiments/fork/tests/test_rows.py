# SPDX-License-Identifier: GPL-2.0-only
"""Verdicts of fork are of the technique alone, and of the whole call that a row is a part of."""

import dataclasses
import html
import json
from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from experiments.fork import whole as fork_whole
from experiments.fork.hosted import HOSTED
from experiments.fork.rows import ForkRow
from ream.errors import CannotRunHere
from ream.experiment import named
from ream.measure.sample import Sample
from ream.measure.statistics import paired_ratio
from ream.measure.whole import LeftOut, left_out, whole_ratio
from ream.published import load_tables, lookup
from ream.record.journal import JOURNAL, Journal
from ream.record.receipt import Receipt, SeriesEntry
from ream.record.record import Record
from ream.replicate.outcome import JudgedRecord, replicate
from ream.replicate.why import Bound
from ream.report import letter, table
from ream.report.contract import Summary
from ream.report.html import page
from ream.session import native as native_session
from ream.stage import live
from ream.variants import choose_variants, on_base
from shipped import SHIPPED, unpacked
from summary_world import summarise

EXPERIMENT = named("fork")
TABLES = load_tables()
REST = LeftOut(17e6, 2.9e6, 2.8e6, 3.0e6, "fork() without the mapping")
TRUTH = {"before": 50.0, "before-again": 50.0, "published": 35.0, "base": 37.0, "ream": 20.0}

Simulated = Callable[..., list[Sample]]


def row(name: str) -> ForkRow:
    found = EXPERIMENT.row(name)
    assert isinstance(found, ForkRow)
    return found


@pytest.fixture
def of_fork(receipt: Receipt) -> Receipt:
    """The receipt of a run of this experiment."""
    variants = {
        one.name: tuple(SeriesEntry.of(series) for series in one.series)
        for one in choose_variants(EXPERIMENT)
    }
    kernel = receipt.kernel.model_copy(update={"variants": variants})
    return receipt.model_copy(update={"kernel": kernel})


@pytest.fixture
def summary_of(simulated: Simulated, of_fork: Receipt) -> Callable[..., Summary]:
    def summary(*names: str, rest: Mapping[str, LeftOut | str] | None = None) -> Summary:
        rows = [row(name) for name in names]
        return summarise(
            EXPERIMENT.only(names),
            rows,
            [sample for one in rows for sample in simulated(one, TRUTH, {})],
            TABLES,
            of_fork,
            run="20261121T021500Z-fork-native-ab12",
            stage="native",
            left_out=dict.fromkeys(names, REST) if rest is None else rest,
        )

    return summary


# --- The technique alone -----------------------------------------------------------------


def test_published_and_before_differ_in_the_technique_alone() -> None:
    by_name = {one.name: one.patches for one in choose_variants(EXPERIMENT)}
    before, published = by_name["before"], by_name["published"]
    assert [patch.subject for patch in published] == [
        "mm: count the mappings of a large folio page by page"
    ]
    assert before[: len(published)] == published
    technique = before[len(published) :]
    assert len(technique) == 5
    assert all(
        patch.subject.startswith(("mm/memory: fork:", "mm/memory: unmap:")) for patch in technique
    )
    changed = [line for patch in technique for line in _changed(patch.body.decode())]
    assert changed
    assert not [line for line in changed if "large_mapcount" in line]
    assert by_name["base"] == ()


def _changed(diff: str) -> list[str]:
    return [
        line
        for line in diff.splitlines()
        if line.startswith(("+", "-")) and not line.startswith(("+++", "---"))
    ]


def test_each_step_from_the_base_to_before_is_a_variant_with_per_patch() -> None:
    names = [one.name for one in choose_variants(EXPERIMENT, per_patch=True)]
    assert [name for name in names if name.startswith("before-")] == [
        "before-again",
        *(f"before-fork-{number}of5" for number in range(1, 5)),
    ]


def test_what_the_counter_costs_is_said_with_its_number(summary_of) -> None:
    summary = summary_of("fork-64k", "exit-64k", "munmap-64k")
    for one in summary.rows:
        over = one.variants["base"].over_published
        assert over is not None
        assert over.ratio == pytest.approx(37 / 35, rel=0.02)
        (said,) = [note for note in one.notes if "_large_mapcount" in note]
        assert f"base takes {over.ratio:.3f} [" in said
        assert "base is slower than published" not in " ".join(one.notes)
    assert "_large_mapcount" in table.render(summary)
    assert "_large_mapcount" in letter.render(summary)


def test_the_table_does_not_call_published_the_base_as_it_is(summary_of) -> None:
    said = " ".join(table.render(summary_of("fork-64k")).split())
    assert "technique is this base without _large_mapcount, of v6.10; before is that" in said
    assert "our implementation" not in said


# --- The whole of which a row is a part --------------------------------------------------


def test_the_ratio_of_the_whole_has_what_is_left_out_on_both_sides(simulated) -> None:
    samples = simulated(row("fork-64k"), TRUTH, {}, launch_sd=0, round_sd=0)
    before, published = (
        next(one.time_ns for one in samples if one.subject == name)
        for name in ("before", "published")
    )
    exact = dataclasses.replace(REST, low_ns=REST.ns, high_ns=REST.ns)
    whole = whole_ratio(samples, "published", exact)
    assert whole is not None
    assert whole.ratio == pytest.approx((published + 2.9e6) / (before + 2.9e6))
    assert whole.low == pytest.approx(whole.ratio)


def test_how_well_the_rest_is_known_widens_the_interval(simulated) -> None:
    samples = simulated(row("fork-64k"), TRUTH, {})
    narrow = whole_ratio(
        samples, "published", dataclasses.replace(REST, low_ns=REST.ns, high_ns=REST.ns)
    )
    wide = whole_ratio(samples, "published", dataclasses.replace(REST, low_ns=0.0, high_ns=20e6))
    part = paired_ratio(samples, "published")
    assert narrow
    assert wide
    assert part
    assert wide.ratio == narrow.ratio > part.ratio
    assert wide.low == pytest.approx(part.low)
    assert wide.high > narrow.high


def test_the_rest_is_a_median_with_its_interval() -> None:
    rest = left_out([100] * 9, [9, 1, 2, 3, 40, 5, 6, 7, 8], "so")
    assert (rest.ns, rest.low_ns, rest.high_ns, rest.share) == (6, 2, 9, pytest.approx(0.94))
    less_than_nothing = left_out([100] * 9, range(-12, -3), "so")
    assert (less_than_nothing.ns, less_than_nothing.low_ns, less_than_nothing.share) == (0, 0, 1)
    with pytest.raises(ValueError, match="5 rounds have no interval"):
        left_out([100] * 5, [1] * 5, "so")


@pytest.mark.parametrize("operation", ["fork", "munmap"])
def test_all_nine_lines_of_a_table_of_whole_calls_get_verdicts(operation: str, summary_of) -> None:
    names = [
        one.name
        for one in EXPERIMENT.at("native").rows
        if one.operation == operation and one.published and not one.frees
    ]
    assert len(names) == 9
    for one in summary_of(*names).rows:
        assert one.published_table is not None
        assert one.published_table.verdict not in ("not-run", "inconclusive")


def test_a_verdict_is_of_the_ratio_that_the_whole_would_have(summary_of) -> None:
    most = {
        "fork-2m": dataclasses.replace(REST, whole_ns=400e6, ns=390e6, low_ns=389e6, high_ns=391e6)
    }
    (alone,) = summary_of("fork-2m").rows
    (small,) = summary_of("fork-2m", rest=most).rows
    assert alone.variants["published"] == small.variants["published"]
    assert alone.published_table.verdict == "agrees"
    # Of 390 + 13 ms the same four are no 30 %.
    assert small.whole.ratio.ratio == pytest.approx(0.99, abs=0.005)
    assert small.published_table.verdict in ("weaker", "contradicts")


def test_a_part_whose_share_is_unknown_gets_no_verdict(summary_of) -> None:
    for rest, reason in (({}, "was not measured"), ({"munmap-4k": "no memory"}, "no memory")):
        (one,) = summary_of("munmap-4k", rest=rest).rows
        assert one.published_table.verdict == "not-run"
        assert reason in one.published_table.reason
        assert one.whole is None


def test_share_and_whole_are_printed_beside_the_verdict(summary_of, tmp_path: Path) -> None:
    summary = summary_of("fork-16k")
    (one,) = json.loads(json.dumps(summary.to_object()))["rows"]
    assert one["whole"]["name"] == "fork()"
    assert one["whole"]["share"] == pytest.approx(1 - 2.9 / 17, rel=1e-3)
    whole = one["whole"]["ratio"]["ratio"]
    said = "share of the whole: 82.9 % of fork() here (14.10 of 17.00 ms; left out: "
    said += f"2.90 ms, {REST.how});"
    place = unpacked(
        next(path for path in SHIPPED if "-fork-native-" in path.name), tmp_path / summary.run
    )
    (place / "run.json").write_text(json.dumps(summary.to_object()))
    on_page = html.unescape(page.render(Record.load(str(place), tmp_path)))
    for text in (table.render(summary), letter.render(summary), on_page):
        plain = " ".join(text.split())
        assert said in plain
        assert f"all of it would have {whole:.3f} [" in plain
    assert said in one["notes"][-2]


def test_replicating_a_record_judges_the_whole_too(summary_of, of_fork: Receipt) -> None:
    summary = summary_of("munmap-2m")
    source = JudgedRecord(summary, of_fork.machine, "6.12.1", emulated=False, guest=None)
    theirs = lookup(TABLES, "unmap-pte-batch-v1")
    found = replicate(theirs, [source], [EXPERIMENT], of_fork.machine, absent={}, failed={})
    (line,) = [one for one in found.lines if one.source is not None]
    (one,) = summary.rows
    assert line.verdict.word == one.published_table.verdict
    assert line.ratio == one.whole.ratio
    assert line.floor == one.whole.floor


# --- How the rest is measured ------------------------------------------------------------


@pytest.mark.xdist_group("settings")  # a visit takes the machine's lock
def test_the_rest_is_measured_on_the_running_kernel(tmp_path: Path) -> None:
    """Measure on the running kernel, with 8 MiB in base pages, which every machine has."""
    rows = [
        row(name).model_copy(update={"mapping_bytes": 8 << 20}) for name in ("fork-4k", "munmap-4k")
    ]
    found = fork_whole.left_out_of(rows, seed=1, work=tmp_path, step=lambda _: None)
    fork, munmap = found["fork-4k"], found["munmap-4k"]
    assert isinstance(fork, LeftOut)
    assert isinstance(munmap, LeftOut)
    assert 0 < fork.low_ns <= fork.ns <= fork.high_ns
    assert "4 KiB folios, 9 rounds" in munmap.how
    assert 0 <= munmap.share <= 1


@pytest.mark.xdist_group("settings")
def test_fork_without_the_mapping_needs_no_folios_but_freeing_them_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def why_not(kib: int, _nr_bytes: int) -> str | None:
        return "only root" if kib > 4 else None

    monkeypatch.setattr(fork_whole, "why_not", why_not)
    rows = [
        row(name).model_copy(update={"mapping_bytes": 4 << 20})
        for name in ("fork-64k", "munmap-64k")
    ]
    found = fork_whole.left_out_of(rows, seed=1, work=tmp_path, step=lambda _: None)
    assert isinstance(found["fork-64k"], LeftOut)
    assert found["munmap-64k"] == "what munmap() takes besides could not be measured: only root"


def test_a_machine_on_which_it_fails_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def visited(*_: Any, **__: Any) -> Any:
        raise CannotRunHere("another run changes settings")

    monkeypatch.setattr(fork_whole, "visited", visited)
    found = fork_whole.left_out_of([row("fork-4k")], seed=1, work=tmp_path, step=lambda _: None)
    assert found == {
        "fork-4k": "the whole call could not be measured: another run changes settings"
    }


def test_a_size_that_memory_cannot_be_mapped_in_leaves_the_others_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without huge pages, rows of 2 MiB have no whole; those of 4 and 64 KiB have theirs."""

    def run(argv: list[str], *_: Any) -> str:
        kib = int(argv[argv.index("--folio-kib") + 1])
        if kib == 2048:
            raise CannotRunHere("folios of 2048 KiB: 0 of 2 good in the best of 8 attempts")
        said = [{"hello": {"folio_kib": kib, "bare_fork_ns": 1000}}]
        for op in ("fork", "munmap", "munmap-shared"):
            time_ns = 9000 if op == "munmap-shared" else 10_000
            its = {"op": op, "folio_kib": kib, "time_ns": time_ns, "nr_ptes": 512}
            said.append({**its, "verified": True})
        return "\n".join(map(json.dumps, (*said, {"end": {"redone": 0}})))

    door = SimpleNamespace(applied=lambda _: nullcontext())
    monkeypatch.setattr(fork_whole, "why_not", lambda *_: None)
    monkeypatch.setattr(live, "sole_door", lambda **_: nullcontext(door))
    monkeypatch.setattr(live, "build_workload", lambda *_: tmp_path / "workload")
    monkeypatch.setattr(live, "run_workload", run)
    names = [f"{op}-{size}" for op in ("fork", "munmap") for size in ("4k", "64k", "2m")]
    found = fork_whole.left_out_of([*map(row, names)], seed=1, work=tmp_path, step=lambda _: None)
    for name in names[:-1]:
        assert isinstance(found[name], LeftOut), name
    assert found["fork-64k"].whole_ns is not None
    assert found["fork-2m"].whole_ns is None  # what is left out depends on no size
    assert "could not be measured: folios of 2048 KiB" in str(found["munmap-2m"])


def test_a_run_that_is_resumed_says_of_the_rest_what_it_said(tmp_path: Path) -> None:
    once = iter([{"fork-4k": REST, "munmap-4k": "no memory"}])
    told = replace(HOSTED, left_out=lambda *_, **__: next(once))
    request = SimpleNamespace(experiment=EXPERIMENT, seed=1, count=None)
    reporter = SimpleNamespace(step=lambda _: None)

    def ask() -> dict[str, LeftOut | str]:
        with closing(Journal(tmp_path / JOURNAL)) as journal:
            part = SimpleNamespace(
                its=told,
                plan=SimpleNamespace(rows=(), label=""),
                bench=SimpleNamespace(work=tmp_path),
            )
            return native_session._left_out(request, part, journal, reporter)

    assert ask() == ask() == {"fork-4k": REST, "munmap-4k": "no memory"}


# --- The vm stage ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fork-pte-batch-v3", "unmap-pte-batch-v1"])
def test_each_line_of_a_table_of_whole_calls_has_a_row_in_guests(name: str) -> None:
    lines = {line.params["folio_kib"] for line in lookup(TABLES, name).rows}
    guests = {
        ref.params["folio_kib"]
        for one in EXPERIMENT.at("vm").rows
        for ref in one.published
        if ref.id == name
    }
    assert guests == lines


def test_a_record_of_a_part_without_the_rest_gets_no_verdict_on_the_whole(
    summary_of, of_fork: Receipt
) -> None:
    summary = summary_of("munmap-2m")
    (one,) = summary.rows
    alone = summary.model_copy(update={"rows": (one.model_copy(update={"whole": None}),)})
    source = JudgedRecord(alone, of_fork.machine, "6.12.1", emulated=False, guest=None)
    theirs = lookup(TABLES, "unmap-pte-batch-v1")
    found = replicate(theirs, [source], [EXPERIMENT], of_fork.machine, absent={}, failed={})
    (line,) = [one for one in found.lines if one.source is not None]
    assert line.verdict.word == "not-run"
    assert line.verdict.reason == "the record timed a part of munmap(), and not the rest of it"


def test_what_the_whole_leaves_out_bounds_what_can_be_gained() -> None:
    part = Bound(0.25, 0.2, 0.9, "a loop", 1, 1 << 20, None)
    whole = dataclasses.replace(part, rest=1.0)
    assert (part.most, whole.most) == (4.0, 2 / 1.25)
    assert not part.excludes(1.7)
    assert whole.excludes(1.7)
    assert not whole.excludes(1.6)


def test_on_7_3_published_is_the_base_itself_and_no_variant_is_measured_twice() -> None:
    assert dict(on_base(EXPERIMENT, "7.3").variants) == {
        "before": ("7.3/before/fork",),
        "published": (),
        "ream": ("7.3/rmap-exclusive", "7.3/pte-hw-done", "7.3/fork"),
    }
