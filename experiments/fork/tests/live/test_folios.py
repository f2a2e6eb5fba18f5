# SPDX-License-Identifier: GPL-2.0-only
"""The workload on the running kernel, small: every size it can have, and every way to be wrong."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from experiments.fork.live import FolioSample, measure_folios, read_samples
from experiments.fork.programs import FORK_FOLIOS
from ream.command import run
from ream.errors import BadUsage, CannotRunHere, ReamError, VerificationFailed
from ream.settings import Door, Setting
from ream.stage.live import FOLIO_KIB, THP, Visits, nr_redone, plan_settings, visit_order, why_not
from ream.stage.workload import HEADERS, build_workload, compile_command, run_workload

pytestmark = pytest.mark.xdist_group("settings")

TEST_BYTES = 64 << 20
ALL_OPS = ("fork", "exit", "refork", "munmap-shared", "munmap", "dontneed")
DEADLINE_S = 120.0
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def fork_folios(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_workload(FORK_FOLIOS, tmp_path_factory.mktemp("workload"))


def words(program: Path, kib: int, ops: Sequence[str] = ALL_OPS, *more: str) -> tuple[str, ...]:
    argv = (str(program), "--folio-kib", str(kib), "--bytes", str(TEST_BYTES))
    return (*argv, "--ops", ",".join(ops), "--check-contents", *more)


def wrong(wrapped: str, work: Path) -> Path:
    """The workload, with one function of wrong.c in place of the true one."""
    out = work / f"wrong-{wrapped}"
    sources = (*FORK_FOLIOS.sources, HERE / "wrong.c")
    # All of wrong.c is linked, so what it calls has to be there for each.
    reals = ("fork", "munmap", "madvise", "folios_hold")
    others = (f"-Wl,--defsym=__real_{name}={name}" for name in reals if name != wrapped)
    options = (*HEADERS, *map(str, sources), f"-Wl,--wrap={wrapped}", *others)
    run(compile_command(out, *options, work=work, arch=None))
    return out


@pytest.mark.parametrize("kib", FOLIO_KIB)
def test_folios_of_every_size_are_had_and_verified(
    door: Door, fork_folios: Path, offered: tuple[int, ...], tmp_path: Path, kib: int
) -> None:
    with door.applied(plan_settings(kib, offered)):
        said = run_workload(words(fork_folios, kib), tmp_path, DEADLINE_S)
    assert nr_redone(said) >= 0
    samples = list(read_samples(said, launch=2, round_number=3))
    assert sorted(sample.op for sample in samples) == sorted(ALL_OPS)
    for sample in samples:
        assert sample.time_ns > 0
        expected = FolioSample(kib, 2, 3, sample.op, sample.time_ns, TEST_BYTES // 4096, True)
        assert sample == expected


def test_equal_states_have_equal_digests(
    door: Door, fork_folios: Path, offered: tuple[int, ...], tmp_path: Path
) -> None:
    digests: dict[tuple[int, str], set[str]] = {}
    for kib in (16, 2048):
        for seed, order in (("1", "contiguous"), ("1", "scattered"), ("2", "contiguous")):
            more = ("--digest", "--seed", seed, "--map-order", order, "--rounds", "2")
            with door.applied(plan_settings(kib, offered)):
                said = run_workload(words(fork_folios, kib, ("fork",), *more), tmp_path, DEADLINE_S)
            found = {json.loads(line).get("digest") for line in said.splitlines()} - {None}
            digests.setdefault((kib, seed), set()).update(found)
    assert all(len(found) == 1 for found in digests.values()), digests
    assert len(set.union(*digests.values())) == len(digests)


def test_a_scattered_mapping_is_verified_as_well(
    door: Door, fork_folios: Path, offered: tuple[int, ...], tmp_path: Path
) -> None:
    more = ("--map-order", "scattered", "--displace-bytes", str(8 << 20))
    with door.applied(plan_settings(16, offered)):
        said = run_workload(words(fork_folios, 16, ("fork",), *more), tmp_path, DEADLINE_S)
    assert '"map_order":"scattered"' in said
    assert len(list(read_samples(said, launch=0, round_number=0))) == 1


def test_folios_that_are_switched_off_cannot_be_had(
    door: Door, fork_folios: Path, offered: tuple[int, ...], tmp_path: Path
) -> None:
    refused = pytest.raises(CannotRunHere, match=r"0 of 1024 good.*madvise \[never\]")
    with refused, door.applied([Setting(s.path, "never") for s in plan_settings(64, offered)]):
        run_workload(words(fork_folios, 64), tmp_path, DEADLINE_S)


def test_folios_of_another_size_are_noticed(
    door: Door, fork_folios: Path, offered: tuple[int, ...], tmp_path: Path
) -> None:
    enabled = plan_settings(32, offered)
    with pytest.raises(CannotRunHere, match="0 of 1024 good"), door.applied(enabled):
        run_workload(words(fork_folios, 64), tmp_path, DEADLINE_S)


def test_a_size_is_had_though_the_top_level_says_never(
    door: Door, fork_folios: Path, offered: tuple[int, ...], tmp_path: Path
) -> None:
    with door.applied([Setting(f"{THP}/enabled", "never"), *plan_settings(64, offered)]):
        said = run_workload(words(fork_folios, 64, ("fork",)), tmp_path, DEADLINE_S)
    assert len(list(read_samples(said, launch=0, round_number=0))) == 1


@pytest.mark.parametrize(
    ("wrapped", "op", "complaint"),
    [
        ("fork", "fork", "is not mapped 2 times"),
        ("munmap", "munmap", "still mapped after munmap"),
        ("munmap", "munmap-shared", "still mapped after munmap"),
        ("madvise", "dontneed", "still mapped after MADV_DONTNEED"),
        ("folios_hold", "fork", "a child reads other than was written"),
    ],
)
@pytest.mark.usefixtures("_folios_of_64_kib")
def test_a_system_call_that_does_wrong_is_noticed(
    tmp_path: Path, wrapped: str, op: str, complaint: str
) -> None:
    program = wrong(wrapped, tmp_path)
    with pytest.raises(VerificationFailed, match=complaint):
        run_workload(words(program, 64, (op,)), tmp_path, DEADLINE_S)


@pytest.fixture
def _folios_of_64_kib(door: Door, offered: tuple[int, ...]) -> Iterator[None]:
    with door.applied(plan_settings(64, offered)):
        yield


def test_huge_pages_that_pmds_map_are_noticed(
    door: Door, offered: tuple[int, ...], tmp_path: Path
) -> None:
    program = wrong("madvise", tmp_path)
    refused = pytest.raises(CannotRunHere)
    with refused as info, door.applied(plan_settings(2048, offered)):
        run_workload(words(program, 2048, ("fork",)), tmp_path, DEADLINE_S)
    if "unfragmented memory" in str(info.value):
        pytest.skip(str(info.value))
    assert "PMDs map them" in str(info.value)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ((), "--folio-kib K: missing"),
        (("--folio-kib", "5"), "4, 16, 32"),
        (("--folio-kib", "4096"), "4, 16, 32"),
        (("--folio-kib", "4x"), "not a number"),
        (("--folio-kib", "4", "--bytes", "4096"), "not a multiple of 2 MiB"),
        (("--folio-kib", "4", "--ops", "spoon"), "--ops spoon"),
        (("--folio-kib", "4", "--map-order", "odd"), "contiguous or scattered"),
        (("--folio-kib", "4", "--rounds"), "lacks its value"),
        (("--quux", "4"), "not an option"),
    ],
)
def test_wrong_words_are_refused_with_exit_2(
    fork_folios: Path, options: tuple[str, ...], complaint: str
) -> None:
    said = subprocess.run(
        (str(fork_folios), *options), capture_output=True, text=True, timeout=60, check=False
    )
    assert said.returncode == 2
    assert complaint in said.stderr
    assert said.stderr.count("\n") == 1


def test_a_workload_that_goes_silent_is_ended(tmp_path: Path) -> None:
    with pytest.raises(ReamError, match="still running after 0.2 s"):
        run_workload(("sleep", "60"), tmp_path, 0.2)


def test_a_workload_without_an_end_has_failed(tmp_path: Path) -> None:
    with pytest.raises(ReamError, match="ended with 0"):
        run_workload(("echo", '{"hello":{}}'), tmp_path, DEADLINE_S)


def test_every_size_comes_once_in_every_round() -> None:
    planned = list(visit_order(FOLIO_KIB, rounds=2, launches=3, seed=9))
    assert planned == list(visit_order(FOLIO_KIB, rounds=2, launches=3, seed=9))
    assert len(planned) == 2 * 3 * len(FOLIO_KIB)
    orders = [planned[at : at + len(FOLIO_KIB)] for at in range(0, len(planned), len(FOLIO_KIB))]
    assert all(sorted(kib for _, _, kib in order) == list(FOLIO_KIB) for order in orders)
    assert len({tuple(kib for _, _, kib in order) for order in orders}) > 1


def test_other_sizes_are_off_while_one_is_measured() -> None:
    planned = plan_settings(64, (16, 64, 2048))
    assert [setting.value for setting in planned] == ["never", "madvise", "never"]
    assert str(planned[1]) == f"echo madvise > {THP}/hugepages-64kB/enabled"


def visits_of(launches: int, work: Path) -> Visits:
    return Visits(launches, seed=1, work=work, step=print)


def test_what_cannot_be_measured_here_is_said(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemAvailable:    2097152 kB\n")
    assert why_not(4, root=tmp_path) is None
    assert "4 GiB do not fit" in str(why_not(4, 4 << 30, root=tmp_path))
    assert "Linux 6.8" in str(why_not(64, root=tmp_path))
    (tmp_path / THP.lstrip("/") / "hugepages-64kB").mkdir(parents=True)
    (tmp_path / THP.lstrip("/") / "hugepages-64kB/enabled").write_text("always [never]\n")
    assert "no such size, but 64 KiB" in str(why_not(8, root=tmp_path))
    for_others = "only root" if os.geteuid() else "kpageflags"
    assert for_others in str(why_not(64, root=tmp_path))


@pytest.mark.parametrize(
    ("sizes", "nr_bytes"), [((8,), 64 << 20), ((4,), 4096), ((4,), 0), ((4,), -2 << 20)]
)
def test_what_cannot_be_asked_for_is_refused(
    tmp_path: Path, sizes: tuple[int, ...], nr_bytes: int
) -> None:
    samples = measure_folios(sizes, mapping_bytes=nr_bytes, rounds=1, visits=visits_of(1, tmp_path))
    with pytest.raises(BadUsage):
        next(samples)


def test_four_kib_need_no_root_and_no_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    samples = list(
        measure_folios([4], mapping_bytes=4 << 20, rounds=2, visits=visits_of(1, tmp_path))
    )
    assert [sample.round for sample in samples] == [0, 0, 0, 1, 1, 1]


def test_what_is_left_of_an_abandoned_measurement_is_nothing(
    settings_kept: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    samples = measure_folios([64], mapping_bytes=4 << 20, rounds=9, visits=visits_of(9, tmp_path))
    next(samples)
    now = {path: Path(path).read_text() for path in settings_kept}
    assert now == settings_kept, "changed while the caller has a sample"
    samples.close()


def test_an_interrupt_ends_the_workload(tmp_path: Path) -> None:
    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_workload(("sleep", "60"), tmp_path, DEADLINE_S)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < 30
