# SPDX-License-Identifier: GPL-2.0-only
"""The models of kernel/model: spin finds no error in them, and each one that we put in."""

import re
from pathlib import Path

import pytest

from promela import CYCLES, INCOMPLETE, SAFETY, assert_error, assert_no_error, nr_errors, pan
from ream.paths import CHECKOUT

MODELS = CHECKOUT / "kernel" / "model"
PARALLEL = MODELS / "zone-device-parallel.pml"
FORK = MODELS / "fork-pte.pml"
DEFERRED = MODELS / "deferred-init.pml"
OFFLOAD = MODELS / "migrate-offload.pml"
DMA = MODELS / "migrate-dma.pml"

LONG = pytest.mark.vm
"""The marker of all models but a small one: each test compiles one, and models rarely change."""


@LONG
def test_no_order_of_events_breaks_the_parallel_memory_map(tmp_path: Path) -> None:
    said = pan(PARALLEL, tmp_path, flags=SAFETY)
    assert_no_error(said, endless=("write_combining_buffer",))


@LONG
def test_every_order_of_events_comes_to_an_end(tmp_path: Path) -> None:
    said = pan(PARALLEL, tmp_path, "-l", flags=CYCLES)
    assert nr_errors(said) == 0, said
    assert not INCOMPLETE.search(said), said
    assert re.search(r"non-progress cycles\s+\+", said)


@LONG
@pytest.mark.parametrize(
    ("mutation", "error"),
    [
        pytest.param("NO_DRAIN", "not_in_memory", id="a chunk is not drained"),
        pytest.param(
            "NO_CANCEL",
            "not_at_rest|not_in_memory|helpers_are_freed|memmap_is_gone",
            id="helpers are not cancelled",
        ),
        pytest.param(
            "FLUSH_INSTEAD_OF_CANCEL",
            "invalid end state",
            id="the caller waits for a work that never starts",
        ),
        pytest.param("PLAIN_COUNTER", r"owner\[|page\[", id="two CPUs are handed one chunk"),
    ],
)
def test_the_model_of_the_memory_map_tells_when(mutation: str, error: str, tmp_path: Path) -> None:
    assert_error(pan(PARALLEL, tmp_path, defines=(mutation,), flags=SAFETY), error)


@LONG
@pytest.mark.parametrize(
    ("part", "endless"),
    [
        pytest.param("ENTRY", ("walker",), id="a page table entry"),
        pytest.param("MAPCOUNT", (), id="the mapcount of a page"),
    ],
)
def test_no_order_of_events_makes_fork_lose(
    part: str, endless: tuple[str, ...], tmp_path: Path
) -> None:
    assert_no_error(pan(FORK, tmp_path, defines=(part,), flags=SAFETY), endless=endless)


def test_no_order_of_events_makes_fork_lose_a_flag(tmp_path: Path) -> None:
    assert_no_error(pan(FORK, tmp_path, defines=("FLAGS",), flags=SAFETY))


DIRTY = r"must_be_dirty"
ACCESSED = r"must_be_accessed"
SHADOW_STACK = r"pte&\(2\|8\)\)!=8"
WRITABLE = r"tlb\[i\]\.writable|flushed"
FLAGS = r"flags=="
MAPCOUNT = r"mapcount=="
REFERENCES = r"nr_refs>=tails"


@LONG
@pytest.mark.parametrize(
    ("part", "mutation", "error"),
    [
        pytest.param("ENTRY", "TEST_ACCESSED", DIRTY, id="an entry that is not dirty is stored"),
        pytest.param("ENTRY", "TEST_DIRTY", ACCESSED, id="an entry that is not young is stored"),
        pytest.param("ENTRY", "TEST_NOTHING", f"{DIRTY}|{ACCESSED}", id="any entry is stored"),
        pytest.param("ENTRY", "NO_SAVED_DIRTY", DIRTY, id="Dirty is cleared and not saved"),
        pytest.param("ENTRY", "KEEP_DIRTY", SHADOW_STACK, id="Dirty outlives Write"),
        pytest.param("ENTRY", "NO_FLUSH", WRITABLE, id="translations outlive the fork"),
        pytest.param("MAPCOUNT", "DO_NOT_ASK", MAPCOUNT, id="shared pages are counted plainly"),
        pytest.param("MAPCOUNT", "STAY_EXCLUSIVE", MAPCOUNT, id="a shared page is exclusive"),
        pytest.param("MAPCOUNT", "REUSE_SHARED", MAPCOUNT, id="a shared page becomes exclusive"),
        pytest.param("MAPCOUNT", "PUT_FIRST", MAPCOUNT, id="a mapping outlives its reference"),
        pytest.param("MAPCOUNT", "NO_LOCK", MAPCOUNT, id="rmap takes no page table lock"),
        pytest.param("MAPCOUNT", "LOOK_ONCE", MAPCOUNT, id="both counts are not compared again"),
        pytest.param("MAPCOUNT", "FIRST_PAGE_FIRST", REFERENCES, id="references before mappings"),
        pytest.param("MAPCOUNT", "ADD_LATE", MAPCOUNT, id="both counts change without the lock"),
    ],
)
def test_the_model_of_fork_tells_when(part: str, mutation: str, error: str, tmp_path: Path) -> None:
    assert_error(pan(FORK, tmp_path, defines=(part, mutation), flags=SAFETY), error)


@pytest.mark.parametrize(
    "mutation",
    [
        pytest.param("WHOLE_WORD", id="all flags are stored"),
        pytest.param("SECOND_PAGE", id="the second page is taken for any tail"),
    ],
)
def test_the_model_of_fork_tells_when_a_flag_is_lost(mutation: str, tmp_path: Path) -> None:
    assert_error(pan(FORK, tmp_path, defines=("FLAGS", mutation), flags=SAFETY), FLAGS)


@LONG
def test_no_order_of_events_loses_a_deferred_page(tmp_path: Path) -> None:
    said = pan(DEFERRED, tmp_path, flags=SAFETY)
    assert_no_error(said, endless=("write_combining_buffers",))


@LONG
@pytest.mark.parametrize(
    ("mutation", "error"),
    [
        pytest.param("NO_DRAIN", r"tail\[got\]|streaming\[", id="a block is not drained"),
        pytest.param("DRAIN_LATE", r"tail\[got\]|streaming\[", id="a block is freed undrained"),
        pytest.param(
            "NO_JOB_LOCK", r"head\[at\]|nr_freed\[|array index", id="two threads take one piece"
        ),
        pytest.param(
            "STAY_OPEN", r"head\[(at|first_deferred)\]|nr_freed\[", id="the zone grows meanwhile"
        ),
        pytest.param("FIRST_ENDS", r"nr_freed\[|streaming\[", id="the first thread ends the job"),
    ],
)
def test_the_model_of_deferred_pages_tells_when(mutation: str, error: str, tmp_path: Path) -> None:
    assert_error(pan(DEFERRED, tmp_path, defines=(mutation,), flags=SAFETY), error)


@LONG
@pytest.mark.parametrize(
    ("defines", "endless"),
    [
        pytest.param(("REGISTRATION",), (), id="who copies comes and goes"),
        pytest.param(("REFERENCES",), ("user",), id="when a copy is good"),
    ],
)
def test_no_order_of_events_spoils_a_copy_made_ahead(
    defines: tuple[str, ...], endless: tuple[str, ...], tmp_path: Path
) -> None:
    assert_no_error(pan(OFFLOAD, tmp_path, defines=defines, flags=SAFETY), endless=endless)


@LONG
def test_nothing_rests_on_the_static_branch(tmp_path: Path) -> None:
    assert_no_error(pan(OFFLOAD, tmp_path, defines=("REGISTRATION", "NO_KEY"), flags=SAFETY))


IN_MODULE = r"loaded\["
STALE = r"copied_data==data"
OLD = r"!\(found\)"


@LONG
@pytest.mark.parametrize(
    ("part", "mutation", "error"),
    [
        pytest.param("REGISTRATION", "NO_MUTEX", r"active_migrator==m", id="two register at once"),
        pytest.param("REGISTRATION", "NO_REF", IN_MODULE, id="a registered module can be unloaded"),
        pytest.param("REGISTRATION", "DO_NOT_ASK", IN_MODULE, id="a module registers as it goes"),
        pytest.param("REGISTRATION", "NO_SYNC", IN_MODULE, id="copies are not waited for"),
        pytest.param("REGISTRATION", "PUT_FIRST", IN_MODULE, id="the module is put too early"),
        pytest.param("REGISTRATION", "CALL_LATE", IN_MODULE, id="the call is turned back late"),
        pytest.param("REGISTRATION", "ACTIVE_LATE", IN_MODULE, id="begin finds who has left"),
        pytest.param("REGISTRATION", "LATE_SECTION", IN_MODULE, id="the section begins too late"),
        pytest.param("REGISTRATION", "SHORT_SECTION", IN_MODULE, id="the section ends with begin"),
        pytest.param("REFERENCES", "NO_MB", STALE, id="no barrier before the references"),
        pytest.param("REFERENCES", "NO_GUP_MB", STALE, id="no barrier in GUP-fast"),
        pytest.param("REFERENCES", "NO_SECOND_LOOK", STALE, id="GUP-fast looks once"),
        pytest.param("REFERENCES", "NO_RMB", STALE, id="contents are read before references"),
        pytest.param("REFERENCES", "NO_CHECK", STALE, id="pins are not looked for"),
        pytest.param("REFERENCES", "CHECK_EARLY", STALE, id="pins are looked for too early"),
        pytest.param("REFERENCES", "FLUSH_LATE", STALE, id="TLBs are flushed after the copy"),
        pytest.param("REFERENCES", "KEEP_MARK", OLD, id="the mark outlives a failed attempt"),
        pytest.param("REFERENCES", "CHECK_FIRST", OLD, id="the mark is read after references"),
        pytest.param("REFERENCES", "NO_FREEZE", r"refs>0", id="references are not frozen"),
    ],
)
def test_the_model_of_copies_ahead_tells_when(
    part: str, mutation: str, error: str, tmp_path: Path
) -> None:
    assert_error(pan(OFFLOAD, tmp_path, defines=(part, mutation), flags=SAFETY), error)


@LONG
def test_no_order_of_events_has_an_engine_write_too_late(tmp_path: Path) -> None:
    assert_no_error(pan(DMA, tmp_path, flags=SAFETY), endless=("engine",))


MARKED = r"!\(marked\)"
HANDED_BACK = r"!\(handed_back\["
SETTLED = r"\(descriptor\[0\]=="


@LONG
@pytest.mark.parametrize(
    ("mutation", "error"),
    [
        pytest.param("LAST_ONLY", SETTLED, id="the last descriptor stands for all"),
        pytest.param("ANY_RESULT", MARKED, id="a descriptor that failed counts"),
        pytest.param("COUNT_FIRST", MARKED, id="a piece is counted off before it has its state"),
        pytest.param("TRUST_WAKEUP", HANDED_BACK, id="a late wake-up is trusted"),
        pytest.param("FREE_EARLY", r"!\(freed\)", id="a channel is freed under a callback"),
        pytest.param("OWED_FOR_EVER", r"invalid end state", id="a channel is never freed"),
        pytest.param("FALL_BACK", HANDED_BACK, id="the CPU copies when the time is over"),
        pytest.param("SETTLE_EARLY", r"kept\[", id="who loses a channel does not count himself"),
        pytest.param("LOST_FLAG", SETTLED, id="that a channel is lost is told beside the count"),
    ],
)
def test_the_model_of_an_engine_tells_when(mutation: str, error: str, tmp_path: Path) -> None:
    assert_error(pan(DMA, tmp_path, defines=(mutation,), flags=SAFETY), error)
