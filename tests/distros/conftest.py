# SPDX-License-Identifier: GPL-2.0-only
"""Minimal Debian systems in folders, and a fresh clone of this checkout in each."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from ream.kernel.archive import mirror_of, targets
from ream.paths import CHECKOUT

HERE = Path(__file__).parent
CLONE = Path("/srv/ream")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
COPY = Path("/srv/certificates.crt")
"""Path of our certificates' copy in a system: a package's own would overwrite the original."""

OUR_OWN = ("http_proxy", "https_proxy", "no_proxy", "PIP_INDEX_URL")
"""Environment variables that configure how this machine reaches package archives."""

FROM_HERE = {name: name for name in map(Path, ("/etc/pip.conf", "/etc/resolv.conf"))}
FROM_HERE[CERTIFICATES] = COPY
"""The same in files, each with its place in a system."""

APART = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
"""What a command mounts is gone when it ends, and so is all that it started."""

NEEDED_BYTES = 16 << 30
BOOTSTRAP_S, COMMAND_S = 1200, 3600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.distros)


def not_here(why: str) -> None:
    """Nothing was tried: that is no success, and no failure."""
    pytest.exit(f"make test-distros: {why}", returncode=3)


@dataclass(frozen=True)
class System:
    """A system in a folder."""

    root: Path
    made_s: float

    def run(self, *words: str, deadline_s: float = COMMAND_S) -> "subprocess.CompletedProcess[str]":
        """What a command says in it, as root, in the clone."""
        enter = (*APART, str(HERE / "enter.sh"))
        told = {name: os.environ[name] for name in OUR_OWN if name in os.environ}
        if CERTIFICATES.is_file():
            told |= {name: str(COPY) for name in ("PIP_CERT", "SSL_CERT_FILE")}
        return subprocess.run(
            (*enter, str(self.root), "env", "-C", str(CLONE), *words),
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C", **told},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=deadline_s,
            check=False,
        )


def sources(suite: str, said: str) -> str:
    """This machine's sources of Debian, of another suite; `said` is what apt says of its own."""
    own = next(line.split()[1] for line in said.splitlines() if "-" not in line.split()[1])
    found = [line.split()[:2] for line in said.splitlines() if line.split()[1].startswith(own)]
    lines = [f"deb {uri} {release.replace(own, suite, 1)} main\n" for uri, release in found]
    return "".join(dict.fromkeys(lines))


@pytest.fixture(scope="session")
def archive() -> str:
    """What apt says of this machine's sources."""
    if os.geteuid():
        not_here("chroot and debootstrap need root")
    for program in ("debootstrap", "unshare", "chroot"):
        if shutil.which(program) is None:
            not_here(f"{program} is not installed")
    if subprocess.run(("unshare", "--mount", "true"), check=False).returncode:
        not_here("no mount namespace can be made here")
    said = targets()
    if mirror_of(said) is None:
        not_here("this machine has no mirror of Debian's archive among its sources")
    return said


@contextmanager
def _system(suite: str, said: str, place: Path) -> Iterator[System]:
    with tempfile.TemporaryDirectory(prefix=f"ream-{suite}-", dir=place) as name:
        root = Path(name) / "root"
        began = time.monotonic()
        make = ("debootstrap", "--variant=minbase", suite, str(root), str(mirror_of(said)))
        made = subprocess.run(
            (*APART, *make), capture_output=True, text=True, timeout=BOOTSTRAP_S, check=False
        )
        assert made.returncode == 0, f"{made.stdout}{made.stderr}"
        (root / "etc/apt/sources.list").write_text(sources(suite, said))
        for file, place_in_it in FROM_HERE.items():
            if file.is_file():
                shutil.copyfile(file, root / place_in_it.relative_to("/"))
        clone = root / CLONE.relative_to("/")
        git = ("git", "clone", "--quiet", "--no-hardlinks", str(CHECKOUT), str(clone))
        subprocess.run(git, check=True, timeout=BOOTSTRAP_S)
        yield System(root, time.monotonic() - began)


@pytest.fixture
def system(archive: str) -> Iterator[Callable[[str], System]]:
    """A function that makes a minimal system of a suite, which is gone after the test."""
    place = Path(tempfile.gettempdir())
    if shutil.disk_usage(place).free < NEEDED_BYTES:
        not_here(f"{place}: a system and its kernels take {NEEDED_BYTES >> 30} GiB")
    with ExitStack() as stack:
        yield lambda suite: stack.enter_context(_system(suite, archive, place))
