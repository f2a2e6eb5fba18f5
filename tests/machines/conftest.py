# SPDX-License-Identifier: GPL-2.0-only
"""Hosts to measure on: sshd, home, machine-id and processes of their own, all on this machine.

A host is a process in namespaces of its own; killing it kills all that runs on it, as a host that
dies does. Keys, configuration and homes are the test's; nothing of the user's is read or changed.
"""

import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from history_world import machine, written
from ream.paths import CHECKOUT, cache_dir

NEEDED = ("ssh", "sshd", "ssh-keygen", "unshare", "rsync", "mount")
UP_S = 60.0

NAMESPACES = ("unshare", "--mount", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc")

INIT = """\
set -eu
mount --bind "$1/machine-id" /etc/machine-id
mount --bind "$1/passwd" /etc/passwd
mount --bind "$2" "$1/cache/ream"
mount -t tmpfs tmpfs /run
mkdir /run/sshd
exec "$3" -D -e -f "$1/sshd_config"
"""
"""PID 1 of a host: directory of the host, cache of kernels, sshd."""

REAM = """\
#!/bin/sh
# The ream of a host: says that it was called, dies where ~/fail has the cell, and takes a second
# over a record that ~/made has for it.
printf '%s\\n' "$*" >>"$HOME/calls"
for word in "$@"; do
	if [ -e "$HOME/fail/$(basename -- "$word")" ]; then
		rm "$HOME/fail/$(basename -- "$word")"
		kill -9 $$
	fi
done
if [ -d "$HOME/made" ]; then
	sleep 1
	exec cp -r "$HOME/made/$(basename -- "$3" .json)/." "$5"
fi
export PYTHONPATH={lab} XDG_CACHE_HOME={cache} XDG_DATA_HOME="$HOME/data"
exec {python} -P -m ream "$@"
"""


def absent(reason: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@dataclass
class Host:
    """A machine to log into as `name`, with the network of them all."""

    name: str
    port: int
    directory: Path
    process: "subprocess.Popen[bytes] | None" = field(default=None)

    @property
    def home(self) -> Path:
        return self.directory / "home"

    def start(self) -> None:
        """Come up, with what was on its disk; raises AssertionError if sshd does not listen."""
        words = (str(self.directory), str(cache_dir()), _sshd())
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                (*NAMESPACES, "sh", "-c", INIT, "host", *words),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        ends_at = time.monotonic() + UP_S
        while time.monotonic() < ends_at and self.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError((self.directory / "log").read_text())

    def die(self) -> None:
        """All of its processes end at once, whatever they were doing."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def fail_once(self, cell: str) -> None:
        """Have ream die the next time that this cell is asked of this host."""
        (self.home / "fail" / f"{cell}.json").touch()

    def make(self, cell: str, number: int, row: str) -> None:
        """Have ream bring this record of a cell, and measure none on this host any more."""
        receipt = {"machine": machine(id=self.name), "settings": {"cell": cell}}
        written(self.home / "made" / cell, number, rows=(row,), receipt=receipt)

    def calls(self) -> list[str]:
        """The command lines of every ream that was started on it."""
        return (self.home / "calls").read_text().splitlines()


@dataclass(frozen=True)
class Network:
    hosts: tuple[Host, ...]
    key: Path
    ssh: str
    """How to reach them: the command, with the test's own configuration."""

    @property
    def ream(self) -> str:
        """Path of ream on every host."""
        return "~/my tools/ream"


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    """Two hosts, alpha and beta, that are up; afterwards nothing of them is left."""
    if os.geteuid() != 0:
        absent("hosts of one's own need root, for namespaces")
    for program in NEEDED:
        if shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
            absent(f"{program}: not installed; `make setup-test` as root installs it")
    tried = subprocess.run((*NAMESPACES, "true"), capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        absent(f"no namespaces of one's own here: {tried.stderr.strip()}")
    cache_dir().mkdir(parents=True, exist_ok=True)
    with _network(tmp_path / "network") as made:
        yield made


@contextmanager
def _network(directory: Path) -> Iterator[Network]:
    directory.mkdir()
    key = directory / "key"
    _generate(key)
    with ExitStack() as stack:
        hosts = []
        for number, name in enumerate(("alpha", "beta")):
            host = _prepare(directory / name, number, key)
            stack.callback(host.die)
            host.start()
            hosts.append(host)
        config = directory / "ssh_config"
        config.write_text("".join(_reach(host, key, directory) for host in hosts))
        yield Network(tuple(hosts), key, f"ssh -F {shlex.quote(str(config))}")


def _prepare(directory: Path, number: int, key: Path) -> Host:
    for name in ("home/my tools", "home/fail", "cache/ream"):
        (directory / name).mkdir(parents=True)
    (directory / "machine-id").write_text(f"{number + 1:032x}\n")
    (directory / "passwd").write_text(
        f"root:x:0:0::{directory}/home:/bin/bash\n"
        # The user that sshd runs as before authentication.
        "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n"
    )
    shutil.copy(f"{key}.pub", directory / "authorized_keys")
    _generate(directory / "host_key")
    ream = directory / "home/my tools/ream"
    ream.write_text(
        REAM.format(
            lab=shlex.quote(str(CHECKOUT / "lab")),
            cache=shlex.quote(str(directory / "cache")),
            python=shlex.quote(sys.executable),
        )
    )
    ream.chmod(0o755)
    host = Host(directory.name, _free_port(), directory)
    (directory / "sshd_config").write_text(
        f"Port {host.port}\nListenAddress 127.0.0.1\nHostKey {directory}/host_key\n"
        f"AuthorizedKeysFile {directory}/authorized_keys\nStrictModes no\nUsePAM no\n"
        "PermitRootLogin prohibit-password\nPasswordAuthentication no\nPidFile none\n"
    )
    return host


def _reach(host: Host, key: Path, directory: Path) -> str:
    return (
        f"Host {host.name}\n  HostName 127.0.0.1\n  Port {host.port}\n  User root\n"
        f"  IdentityFile {key}\n  IdentitiesOnly yes\n  BatchMode yes\n  ConnectTimeout 10\n"
        f"  UserKnownHostsFile {directory}/known_hosts\n  StrictHostKeyChecking accept-new\n"
        "  GlobalKnownHostsFile none\n"
    )


def _generate(key: Path) -> None:
    words = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(key))
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, timeout=60)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _sshd() -> str:
    """By its whole path, without which it refuses to start."""
    found = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    assert found is not None
    return found


@pytest.fixture
def need() -> Callable[[str], None]:
    """Skip loudly, and in CI fail, if a program is missing."""

    def check(program: str) -> None:
        if shutil.which(program) is None:
            absent(f"{program}: not installed; `make setup-test` as root installs it")

    return check
