# SPDX-License-Identifier: GPL-2.0-only
"""What an interrupted run leaves, and which session may resume it."""

import fcntl
import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ream.errors import BadUsage, ReamError, VerificationFailed
from ream.experiment import Stage, named
from ream.measure.sample import Sample
from ream.measure.stable import Stable
from ream.paths import CHECKOUT
from ream.paths import SERIES as SHIPPED
from ream.progress import Reporter
from ream.record.archive import files_of
from ream.record.journal import JOURNAL
from ream.record.partial import discard, find_partial, interrupted, read_plan
from ream.record.record import (
    PLAN,
    RECEIPT,
    SERIES,
    RecordWriter,
    find_record,
    new_run_id,
    newest_time,
    open_record,
    pretty,
    read_object,
)
from ream.session.plan import Basis, check_basis, plan_object, resumed_request, series_text
from ream.session.request import GuestOptions, Request
from ream.session.run import _run_id, record_bytes
from ream.stage.qemu import GuestNode
from ream.variants import Variant, choose_variants

ID = "20261121T021500Z-zone-device-native-ab12"
SAMPLE = Sample("row", 0, 0, "variant", "before", 1, 100, 64, verified=True)
RUN = {"schema": 1, "rows": []}
BASIS = Basis("bench", "machine", 2, "tree", "gcc", qemu="QEMU")


def cut_short(runs: Path, run_id: str = ID, error: BaseException | None = None) -> BaseException:
    """Leave a record with one whole round, as an error does; the error."""
    cause = error or KeyboardInterrupt()

    def measure() -> None:
        with open_record(runs, run_id) as record:
            record.write(PLAN, pretty({"schema": 1, "command": "ream run fork"}))
            record.append(SAMPLE)
            record.journal.add("launch 0", "1")
            record.journal.whole("launch 0")
            raise cause

    with pytest.raises(type(cause)):
        measure()
    return cause


def left_in(runs: Path) -> list[str]:
    return sorted(entry.name for entry in runs.iterdir())


# --- What stays ---------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ReamError("a guest died"), OSError(5)])
def test_a_whole_round_outlives_every_error_which_says_how_to_go_on(
    tmp_path: Path, error: BaseException
) -> None:
    cut_short(tmp_path, error=error)
    assert left_in(tmp_path) == [f".{ID}.partial"]
    (note,) = error.__notes__
    assert f"`ream run --resume {ID} --output {tmp_path}`" in note


def test_memory_that_was_wrong_leaves_nothing_to_try_again_with(tmp_path: Path) -> None:
    error = cut_short(tmp_path, error=VerificationFailed("memory is wrong"))
    assert left_in(tmp_path) == []
    assert not hasattr(error, "__notes__")


def test_another_run_leaves_it_alone_and_a_record_of_nothing_not(tmp_path: Path) -> None:
    cut_short(tmp_path)
    nothing = tmp_path / ".20200101T000000Z-zone-device-native-0000.partial"
    nothing.mkdir()
    (nothing / JOURNAL).write_text('{"piece": "launch 0", "said": 1}\n')
    with open_record(tmp_path, ID.replace("ab12", "cd34")) as record:
        record.finish(RUN, RUN, table="", letter="")
    assert left_in(tmp_path) == [f".{ID}.partial", ID.replace("ab12", "cd34")]


def test_going_on_finishes_the_very_record(tmp_path: Path) -> None:
    cut_short(tmp_path)
    with open_record(tmp_path, ID, resume=True) as record:
        assert record.journal.said("launch 0") == ("1",)
        record.append(SAMPLE)
        record.append(replace(SAMPLE, launch=1))
        record.finish(RUN, RUN, table="", letter="")
    assert left_in(tmp_path) == [ID]
    lines = (tmp_path / ID / "samples.jsonl").read_text().splitlines()
    assert [json.loads(line)["launch"] for line in lines] == [0, 1]
    assert left_in(tmp_path / ID) == [
        *("SHA256SUMS", "letter.txt", "plan.json", "receipt.json"),
        *("run.json", "samples.jsonl", "table.txt"),
    ]


def test_samples_that_come_again_replace_those_there_were(tmp_path: Path) -> None:
    with open_record(tmp_path, ID) as record:
        record.append(SAMPLE)
        record.begin()
        assert len((tmp_path / f".{ID}.partial/samples.jsonl").read_text().splitlines()) == 1
        for launch in range(3):
            record.append(replace(SAMPLE, launch=launch))
        record.finish(RUN, RUN, table="", letter="")
    assert len((tmp_path / ID / "samples.jsonl").read_text().splitlines()) == 3


def test_a_console_of_a_boot_that_is_done_stays(tmp_path: Path) -> None:
    log = tmp_path / "before-0.log"
    with open_record(tmp_path / "runs", ID) as record:
        log.write_text("cut short")
        record.keep("consoles/before-0.log", log)
        log.write_text("booted")
        record.keep("consoles/before-0.log", log)
        log.unlink()
        record.keep("consoles/before-0.log", log)
        path = record.finish(RUN, RUN, table="", letter="")
    assert (path / "consoles/before-0.log").read_text() == "booted"
    assert left_in(path / "consoles") == ["before-0.log"]


def test_a_record_that_could_not_be_finished_can_be_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def finish(*, resume: bool) -> None:
        with open_record(tmp_path, ID, resume=resume) as record:
            record.journal.add("launch 0", "1")
            record.journal.whole("launch 0")
            record.append(SAMPLE)
            record.finish(RUN, RUN, table="", letter="")

    def full(_: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ReamError, match="No space left"):
        finish(resume=False)
    monkeypatch.undo()
    finish(resume=True)
    assert left_in(tmp_path) == [ID]


def test_until_it_has_its_name_a_record_has_all_that_it_needs_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def finish(*, resume: bool) -> None:
        with open_record(tmp_path, ID, resume=resume) as record:
            record.write(SERIES, "[]")
            record.journal.add("launch 0", "1")
            record.journal.whole("launch 0")
            record.append(SAMPLE)
            record.finish(RUN, RUN, table="", letter="")

    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    partial = tmp_path / f".{ID}.partial"
    with monkeypatch.context() as patched:
        # The name is the last thing that a death can keep it from.
        patched.setattr(type(partial), "rename", full)
        with pytest.raises(ReamError, match="No space left"):
            finish(resume=False)
    assert {JOURNAL, SERIES} <= set(left_in(partial))
    finish(resume=True)
    assert not {JOURNAL, SERIES} & set(left_in(tmp_path / ID))


# --- Exclusive access ---------------------------------------------------------------------


def test_two_cannot_go_on_with_one_run(tmp_path: Path) -> None:
    cut_short(tmp_path)
    with open_record(tmp_path, ID, resume=True) as record:
        with (
            pytest.raises(BadUsage, match="another process is measuring for this record"),
            open_record(tmp_path, ID, resume=True),
        ):
            pytest.fail("measured")
        with pytest.raises(BadUsage, match="another process"):
            discard(ID, tmp_path)
        assert interrupted(tmp_path)[0].running
        record.finish(RUN, RUN, table="", letter="")
    assert left_in(tmp_path) == [ID]


def test_somebody_who_only_looks_does_not_keep_it_from_going_on(tmp_path: Path) -> None:
    cut_short(tmp_path)
    looking = os.open(tmp_path / f".{ID}.partial", os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    try:
        with pytest.raises(BadUsage), open_record(tmp_path, ID, resume=True):
            pytest.fail("it is locked all the time")
    finally:
        os.close(looking)
    assert not interrupted(tmp_path)[0].running
    with open_record(tmp_path, ID, resume=True):
        pass
    assert left_in(tmp_path) == [f".{ID}.partial"]


def test_an_interrupted_run_is_found_and_removed(tmp_path: Path) -> None:
    assert interrupted(tmp_path / "nowhere") == ()
    other = ID.replace("20261121", "20261122").replace("zone-device-native", "deferred-init-vm")
    cut_short(tmp_path, other)
    cut_short(tmp_path)
    one, two = interrupted(tmp_path)
    assert (one.run, one.experiment, one.stage) == (ID, "zone-device", "native")
    assert (two.run, two.experiment, two.stage) == (other, "deferred-init", "vm")
    assert (one.nr_samples, one.command, one.running) == (1, "ream run fork", False)
    assert one.discard == f"ream run --discard {ID} --output {tmp_path}"
    for asked in (other, "last", other[:10], str(two.path), two.path.name):
        assert find_partial(asked, tmp_path) == two.path
    with pytest.raises(BadUsage, match=f"2 interrupted runs are called 'ab12'.*{ID}, {other}"):
        find_partial("ab12", tmp_path)
    for asked in ("quux", "", "../x", "x" * 300):
        with pytest.raises(BadUsage, match="no interrupted run is called"):
            find_partial(asked, tmp_path)
    assert discard("last", tmp_path) == other
    assert left_in(tmp_path) == [f".{ID}.partial"]


def test_a_finished_run_cannot_be_gone_on_with(tmp_path: Path) -> None:
    with open_record(tmp_path, ID) as record:
        record.finish(RUN, RUN, table="", letter="")
    with pytest.raises(BadUsage, match=f"{ID} is finished; `ream report {ID}` shows it"):
        find_partial(ID, tmp_path)


# --- The clock ----------------------------------------------------------------------------


def test_a_clock_that_is_set_back_does_not_make_an_older_record_the_last(tmp_path: Path) -> None:
    now = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
    ids = []
    for shift in (timedelta(0), timedelta(hours=-3), timedelta(days=-400), timedelta(seconds=1)):
        ids.append(new_run_id("fork", "native", runs=tmp_path, now=now + shift))
        with open_record(tmp_path, ids[-1]) as record:
            record.finish(RUN, RUN, table="", letter="")
        assert find_record("last", tmp_path).name == ids[-1]
    assert ids == sorted(ids)
    assert newest_time(tmp_path) == now + timedelta(seconds=3)
    later = new_run_id("fork", "native", runs=tmp_path, now=now + timedelta(hours=1))
    assert later.startswith("20261121T130000Z-fork-native-")


def test_what_only_looks_like_a_time_is_none(tmp_path: Path) -> None:
    (tmp_path / "99999999T999999Z-notes").mkdir()
    assert newest_time(tmp_path) is None
    assert newest_time(tmp_path / "nowhere") is None
    cut_short(tmp_path)
    assert newest_time(tmp_path) == datetime(2026, 11, 21, 2, 15, tzinfo=UTC)


# --- The plan -----------------------------------------------------------------------------


def request_of(experiment: str, stage: Stage, runs: Path) -> Request:
    asked = named(experiment).at(stage).resized(launches=7)
    return Request(
        experiment=asked,
        stage=stage,
        variants=choose_variants(asked),
        tree=Path.home() / "linux",
        threads=None,
        seed=5,
        runs=runs,
        cache=runs / "cache",
        command=f"ream run -o {Path.home()}/x",
        guest=GuestOptions(
            nodes=(GuestNode(1 << 30, "0-1"),), distances=((0, 1, 20),), append=("a",)
        ),
        stable=Stable(3.0, None, 2.5),
        cell="0123456789ab",
    )


def planned(request: Request, run_id: str = ID) -> Path:
    partial = request.runs / f".{run_id}.partial"
    partial.mkdir(parents=True)
    (partial / PLAN).write_text(pretty(plan_object(request, run_id, BASIS)))
    (partial / SERIES).write_text(series_text(request))
    return partial


def test_which_variants_are_the_users_comes_back_with_their_prefixes(tmp_path: Path) -> None:
    request = request_of("zone-device", "native", tmp_path)
    mine = tmp_path / "mine"
    mine.mkdir()
    for patch in sorted((SHIPPED / "zone-device").glob("000[12]-*.patch")):
        (mine / patch.name).write_bytes(patch.read_bytes())
    variants = choose_variants(request.experiment, user_series=[mine], per_patch=True)
    request = replace(request, variants=variants)
    again = resumed_request(planned(request), cache=request.cache)
    for asked in (request, again):
        given = [variant.name for variant in asked.variants if variant.given]
        assert given == ["mine", "mine-1of2"]


STAGES: tuple[tuple[str, Stage], ...] = (
    *((name, "native") for name in ("zone-device", "deferred-init", "fork", "migrate", "compact")),
    *((name, "vm") for name in ("zone-device", "deferred-init", "fork", "migrate", "compact")),
    *((name, "live") for name in ("fork", "migrate", "compact")),
)


@pytest.mark.parametrize(("experiment", "stage"), STAGES)
def test_a_request_comes_back_from_its_plan(experiment: str, stage: Stage, tmp_path: Path) -> None:
    request = request_of(experiment, stage, tmp_path)
    partial = planned(request)
    again = resumed_request(partial, cache=request.cache)
    assert again == replace(request, resume=partial, command="ream run -o ~/x")
    check_basis(partial, BASIS)
    # The plan stays in the record, which names nobody.
    assert str(Path.home()) not in (partial / PLAN).read_text()


def test_patches_are_those_of_then_whatever_their_file_holds_now(tmp_path: Path) -> None:
    request = request_of("zone-device", "native", tmp_path)
    series = request.variants[-1].series[0]
    own = replace(series, name="mine", patches=(replace(series.patches[0], body=b"\xff\0mine"),))
    request = replace(request, variants=(*request.variants, Variant("mine", (own,))))
    again = resumed_request(planned(request), cache=request.cache)
    assert again.variants[-1].series[0].patches[0].body == b"\xff\0mine"


def test_another_basis_or_series_is_refused_with_all_values(tmp_path: Path) -> None:
    request = request_of("fork", "native", tmp_path)
    *others, series = request.variants[-1].series
    changed = replace(series, patches=series.patches[:-1])
    other = replace(request.variants[-1], series=(*others, changed))
    partial = planned(replace(request, variants=(*request.variants[:-1], other)))
    head = "the run cannot go on, begin a new one: "
    with pytest.raises(BadUsage) as refused:
        check_basis(partial, replace(BASIS, nr_usable_cpus=4, qemu="another"))
    assert str(refused.value).splitlines() == [
        f"{head}usable CPUs: 2 when it began, 4 now",
        f"{head}QEMU: QEMU when it began, another now",
    ]
    said = f"{head}series of fork: {changed.id[:12]} when it began, {series.id[:12]} now"
    with pytest.raises(BadUsage, match=said):
        resumed_request(partial, cache=request.cache)


def test_a_series_in_this_checkout_with_another_message_is_gone_on_with(tmp_path: Path) -> None:
    request = request_of("fork", "native", tmp_path)
    series = request.variants[-1].series[0]
    first, *others = series.patches
    worded = replace(first, body=first.body.replace(b"Subject: ", b"Subject: once more: ", 1))
    changed = replace(series, patches=(worded, *others))
    assert changed.id != series.id
    variants = (*request.variants[:-1], replace(request.variants[-1], series=(changed,)))
    resumed = resumed_request(planned(replace(request, variants=variants)), cache=request.cache)
    assert resumed.variants[-1].series == (changed,)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda _: '{"schema": 1', "the record is damaged; the run cannot go on; `ream"),
        (lambda _: "[" * 100_000, "not JSON"),
        (lambda _: "[]", "schema None; this ream reads schema 1"),
        (lambda text: text.replace('"schema": 1', '"schema": 2'), "schema 2"),
        (lambda text: text.replace('"seed"', '"sad"'), "it has no seed"),
        (lambda text: text.replace('"rounds": ', '"rounds": -', 1), "the plan is damaged"),
        (lambda text: text.replace('"accel": "auto"', '"accel": "x"'), "the plan is damaged"),
        (
            lambda text: text.replace('"before-again": [', '"quux": ['),
            "series of quux: .* when it began, not said now",
        ),
    ],
)
def test_a_damaged_plan_is_one_line_with_a_way_out(
    tmp_path: Path, change: Callable[[str], str], said: str
) -> None:
    partial = planned(request_of("fork", "native", tmp_path))
    (partial / PLAN).write_text(change((partial / PLAN).read_text()))
    with pytest.raises(BadUsage, match=said) as raised:
        resumed_request(partial, cache=tmp_path)
    assert len(str(raised.value).splitlines()) == said.startswith("series of quux") + 1


def test_a_plan_or_patches_that_are_gone_are_one_line(tmp_path: Path) -> None:
    partial = planned(request_of("fork", "native", tmp_path))
    (partial / SERIES).unlink()
    with pytest.raises(BadUsage, match=r"^[^\n]*series\.json: No such file[^\n]*--discard[^\n]*$"):
        resumed_request(partial, cache=tmp_path)
    (partial / PLAN).unlink()
    with pytest.raises(BadUsage, match=r"plan\.json: No such file.*`ream run --discard"):
        read_plan(partial)


def test_a_writer_keeps_what_the_machine_did(tmp_path: Path) -> None:
    with open_record(tmp_path, ID) as record:
        assert isinstance(record, RecordWriter)
        assert record.noise_until() == 0
        record.append_noise('{"t_s": 0}')
        record.append_noise('{"t_s": 2}\n')
        assert record.noise_until() == 2
        with (tmp_path / f".{ID}.partial/noise.jsonl").open("a+") as noise:
            noise.seek(0)
            text = noise.read()
            noise.write('{"t_s": 4')  # a death came between
        assert record.noise_until() == 2
    assert text == '{"t_s": 0}\n{"t_s": 2}\n'


def test_runs_that_were_interrupted_take_one_line_however_many_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = replace(request_of("fork", "native", tmp_path), resume=None)
    ids = [ID.replace("T02", f"T{hour:02}") for hour in (3, 4, 5)]
    for number, run in enumerate(ids, start=1):
        cut_short(tmp_path, run)
        _run_id(request, Reporter())
        (said,) = capsys.readouterr().err.splitlines()
        assert f"{run} was interrupted after 1 sample: `ream run --resume {run} " in said
        assert f"`ream run --discard {run} --output {tmp_path}` removes it" in said
        several = f"{number} runs were interrupted; {run}" in said
        assert several == (f"`ream history --runs {tmp_path}` names the others" in said)
        assert several == (number > 1)


@pytest.mark.parametrize(
    ("experiment", "name"),
    [
        ("zone-device", "20261122T181226Z-zone-device-native-007a"),
        ("fork", "20261128T075224Z-fork-native-6e45"),
        ("migrate", "20261128T080903Z-migrate-native-3e93"),
    ],
)
def test_the_room_asked_for_is_that_of_the_record_with_some_to_spare(
    tmp_path: Path, experiment: str, name: str
) -> None:
    record = CHECKOUT / "docs/records" / name
    taken = 0
    for file, content in files_of(record).items():
        taken += len(content) * (2 if "samples" in file else 1)  # the journal, too
    settings = read_object(record / RECEIPT)["settings"]
    request = request_of(experiment, "native", tmp_path)
    asked = request.experiment.resized(launches=settings["launches"])
    asked = asked.only([*settings["rounds"]])
    room = record_bytes(replace(request, experiment=asked, stable=None))
    assert taken < room < 8 * taken


def test_a_small_run_needs_little_room_and_one_until_stable_more(tmp_path: Path) -> None:
    request = request_of("fork", "native", tmp_path)
    small = request.experiment.only(["fork-64k"]).resized(launches=2, rounds=2)
    once = replace(request, experiment=small, stable=None)
    assert record_bytes(once) < 1 << 20
    assert record_bytes(replace(once, stable=Stable(3.0, 50))) > record_bytes(once)
    assert record_bytes(replace(once, stage="vm")) > record_bytes(once)
