# SPDX-License-Identifier: GPL-2.0-only
"""Plays QEMU: connects to port and monitor as QEMU does, then does what a script of steps says.

usage: fake_qemu.py PORT QMP [VERB WORD]...
"""

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

MEMORY = 0x5A

stubs: list[socket.socket] = []
statuses = ["internal-error"]


def serve(monitor: socket.socket, greets: bool) -> None:
    """A monitor that knows the commands we use, and saves memory that holds one byte value."""
    status = "running"
    if not greets:
        return
    version = {"qemu": {"major": 7, "minor": 2, "micro": 0}, "package": ""}
    send(monitor, {"QMP": {"version": version, "capabilities": []}})
    for command in commands(monitor):
        answer: object = {}
        arguments = command.get("arguments", {})
        if command["execute"] == "memsave":
            if arguments["val"] == 0x1000:
                error = {"class": "GenericError", "desc": "Invalid addr 0x1000/size 8 specified"}
                send(monitor, {"error": error, "id": command["id"]})
                continue
            Path(arguments["filename"]).write_bytes(bytes([MEMORY]) * arguments["size"])
        elif command["execute"] == "stop":
            status = "paused"
            send(monitor, event("STOP"))
        elif command["execute"] == "query-status":
            answer = {"status": statuses[-1], "running": False}
        elif command["execute"] == "cont":
            assert status == "paused"
            send(monitor, event("RESUME"))
        send(monitor, {"return": answer, **({"id": command["id"]} if "id" in command else {})})


def event(name: str) -> dict[str, object]:
    return {"event": name, "timestamp": {"seconds": 1, "microseconds": 0}}


def commands(monitor: socket.socket) -> Iterator[dict[str, Any]]:
    """One JSON object after the other; nothing need be between them."""
    text = ""
    while chunk := monitor.recv(1 << 16):
        text += chunk.decode()
        while text.strip():
            try:
                command, end = json.JSONDecoder().raw_decode(text.lstrip())
            except ValueError:
                break
            text = text.lstrip()[end:]
            yield command


def send(monitor: socket.socket, message: object) -> None:
    monitor.sendall(json.dumps(message).encode() + b"\n")


def connected(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    return connection


def do(verb: str, word: str, port: socket.socket, monitor: socket.socket) -> None:
    line = word.encode() + b"\n"
    steps: dict[str, Callable[[], object]] = {
        "print": lambda: os.write(1, word.encode() + b"\r\n"),
        "replay": lambda: os.write(1, Path(word).read_bytes()),
        "complain": lambda: os.write(2, line),
        "tell": lambda: port.sendall(line),
        "tell-part": lambda: port.sendall(word.encode()),
        "await": lambda: expect(port, line),
        "event": lambda: send(monitor, event(word)),
        "sleep": lambda: time.sleep(float(word)),
        "chatter": lambda: chatter(line),
        "close": lambda: os.closerange(1, 3),
        "greet": lambda: None,
        "status": lambda: statuses.append(word),
        "stand": lambda: stand(word),
        "arrive": arrive,
        "exit": lambda: os._exit(int(word)),
        "signal": lambda: os.kill(os.getpid(), signal.Signals[word]),
    }
    steps[verb]()


def stand(path: str) -> None:
    """A gdb stub: the guest stands until it is to run; only "arrive" makes it stand again."""
    stubs.append(connected(path))
    run_on()


def arrive() -> None:
    stubs[0].sendall(b"$T05thread:01;#07")
    run_on()


def run_on() -> None:
    """Agree to everything until the guest is to run."""
    said = b""
    while not said.endswith((b"$c#63", b"$D#44")):
        said += stubs[0].recv(1)
        if said[-3:-2] == b"#" and not said.endswith(b"$c#63"):
            stubs[0].sendall(b"+$OK#9a")


def expect(port: socket.socket, line: bytes) -> None:
    said = b""
    while not said.endswith(b"\n"):
        said += port.recv(1)
    assert said == line


def chatter(line: bytes) -> None:
    while True:
        os.write(1, line)


def main() -> None:
    port, monitor = (connected(path) for path in sys.argv[1:3])
    steps = list(zip(sys.argv[3::2], sys.argv[4::2], strict=True))
    greets = ("greet", "no") not in steps
    threading.Thread(target=serve, args=(monitor, greets), daemon=True).start()
    for verb, word in steps:
        do(verb, word, port, monitor)
    os._exit(0)


if __name__ == "__main__":
    main()
