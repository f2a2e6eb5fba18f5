# SPDX-License-Identifier: GPL-2.0-only
"""What is said to QEMU's gdb stub, and what is made of its answers."""

import socket
import threading
from collections.abc import Iterator

import pytest

from ream.errors import ReamError
from ream.stage import gdb
from ream.stage.gdb import Debugger, packet

Pair = tuple[Debugger, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """A debugger, and the end of the connection that QEMU would have."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(10.0)
        yield Debugger(ours), theirs


def served(stub: socket.socket, *answers: bytes) -> tuple[threading.Thread, list[bytes]]:
    """A stub that gives these answers in turn, b"" to a request that has none."""
    asked: list[bytes] = []

    def serve() -> None:
        for answer in answers:
            heard = b""
            while b"#" not in heard[:-2]:
                heard += stub.recv(1)
            asked.append(heard.lstrip(b"+")[1:-3])
            stub.sendall(b"+" + (packet(answer) if answer else b""))

    thread = threading.Thread(target=serve)
    thread.start()
    return thread, asked


def test_a_packet_ends_with_the_sum_of_its_bytes() -> None:
    assert packet(b"OK") == b"$OK#9a"
    assert packet(b"") == b"$#00"


def test_a_guest_runs_to_one_place_after_the_other_and_is_left(pair: Pair) -> None:
    debugger, stub = pair
    first, second = 0xFFFFFFFF81A81900, 0xFFFFFFFF81A8B260
    thread, asked = served(stub, b"OK", b"", b"OK", b"OK", b"", b"OK", b"OK")
    debugger.run_to(first)
    assert not debugger.stands
    stub.sendall(packet(b"T05thread:01;"))
    while not debugger.stands:
        assert debugger.hear()
    debugger.run_to(second)
    stub.sendall(packet(b"S05"))
    while not debugger.stands:
        assert debugger.hear()
    debugger.leave()
    thread.join()
    assert [each.decode() for each in asked] == [
        f"Z1,{first:x},1",
        "c",
        f"z1,{first:x},1",
        f"Z1,{second:x},1",
        "c",
        f"z1,{second:x},1",
        "D",
    ]


def test_an_answer_may_come_in_pieces(pair: Pair) -> None:
    debugger, stub = pair
    thread, _ = served(stub, b"OK", b"")
    debugger.run_to(0x1000)
    thread.join()
    for piece in (b"$T0", b"5thread:01;", b"#07"):
        assert not debugger.stands
        stub.sendall(piece)
        assert debugger.hear()
    assert debugger.stands


def test_a_breakpoint_that_is_refused_is_told(pair: Pair) -> None:
    debugger, stub = pair
    thread, _ = served(stub, b"E22")
    with pytest.raises(ReamError, match=r"Z1,1000,1 was answered by b'E22'"):
        debugger.run_to(0x1000)
    thread.join()


@pytest.mark.parametrize(
    ("said", "words"),
    [(b"$T05#00", "damaged"), (packet(b"T0bthread:01;"), "no breakpoint"), (packet(b"F1"), "no b")],
)
def test_what_is_no_breakpoint_is_an_error(pair: Pair, said: bytes, words: str) -> None:
    debugger, stub = pair
    stub.sendall(said)
    with pytest.raises(ReamError, match=words):
        debugger.hear()


def test_a_guest_that_ends_is_no_error_of_the_stubs(pair: Pair) -> None:
    debugger, stub = pair
    stub.sendall(packet(b"W00"))
    assert debugger.hear()
    stub.close()
    assert not debugger.hear()
    with pytest.raises(ReamError, match="gdb stub"):
        debugger.leave()


def test_a_stub_that_is_silent_is_not_waited_for_forever(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    debugger, _ = pair
    monkeypatch.setattr(gdb, "ANSWER_S", 0.1)
    debugger._connection.settimeout(gdb.ANSWER_S)
    with pytest.raises(ReamError, match="no answer to Z1,1,1"):
        debugger.run_to(1)
