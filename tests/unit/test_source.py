# SPDX-License-Identifier: GPL-2.0-only
"""Kernel source from a directory, git or a tar ball; whole, or not in the cache."""

import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from ream.errors import BadUsage, CannotRunHere, ReamError
from ream.kernel import archive, source
from ream.kernel.archive import Offer
from ream.kernel.base import Base, base_named
from ream.kernel.cache import PARTIAL, Step
from ream.kernel.source import LATEST, Tree, cached_tree, fetch_tree, kernel_version
from ream.paths import CHECKOUT

MAKEFILE = """\
# SPDX-License-Identifier: GPL-2.0
VERSION = 6
PATCHLEVEL = 12
SUBLEVEL = 117
EXTRAVERSION =
NAME = Baby Opossum Posse
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    return write_kernel(tmp_path / "linux-6.12.117")


def write_kernel(tree: Path, *, extraversion: str = "") -> Path:
    (tree / "mm").mkdir(parents=True)
    (tree / "Makefile").write_text(
        MAKEFILE.replace("EXTRAVERSION =", f"EXTRAVERSION = {extraversion}")
    )
    (tree / "mm" / "mm_init.c").write_text("/* mm_init.c */\n")
    (tree / "script.sh").write_text("#!/bin/sh\n")
    (tree / "script.sh").chmod(0o755)
    (tree / "link").symlink_to("mm/mm_init.c")
    (tree / "dirlink").symlink_to("mm")
    return tree


def fetch(tree: Path | None, cache: Path, step: Step = lambda _: None) -> Tree:
    return fetch_tree(tree, cache=cache, step=step)


def whole_entries(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "tree").iterdir() if path.suffix != ".lock")


def tarball(kernel: Path, form: str, *, top: bool = True) -> Path:
    """A tar ball of a kernel with or without the top directory that releases have."""
    path = kernel.with_name(f"release.{form}")
    where, what = (kernel.parent, kernel.name) if top else (kernel, ".")
    subprocess.run(["tar", "-caf", path, "-C", where, what], check=True)
    return path


def git(tree: Path, *words: str) -> str:
    identity = ("-c", "user.name=x", "-c", "user.email=x@localhost")
    return subprocess.run(
        ["git", *identity, *words], cwd=tree, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(tree: Path) -> str:
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "base")
    return git(tree, "rev-parse", "HEAD")


def test_a_directory_is_copied_with_its_links_and_x_bits(kernel: Path, tmp_path: Path) -> None:
    tree = fetch(kernel, tmp_path / "cache")
    assert tree.version == "6.12.117"
    assert tree.label == f"linux-6.12.117 (directory {tree.key[:12]})"
    assert tree.path == tmp_path / "cache" / "tree" / tree.key / "linux"
    assert (tree.path / "mm" / "mm_init.c").read_text() == "/* mm_init.c */\n"
    assert (tree.path / "link").readlink() == Path("mm/mm_init.c")
    assert (tree.path / "dirlink").is_symlink()
    assert os.access(tree.path / "script.sh", os.X_OK)


def test_a_pristine_tree_takes_no_writing(kernel: Path, tmp_path: Path) -> None:
    tree = fetch(kernel, tmp_path / "cache")
    assert not (tree.path / "Makefile").stat().st_mode & 0o222
    assert (tree.path / "mm").stat().st_mode & 0o200


def test_the_same_content_is_copied_once_wherever_it_lies(kernel: Path, tmp_path: Path) -> None:
    first = fetch(kernel, tmp_path / "cache")
    elsewhere = kernel.rename(tmp_path / "elsewhere")
    said: list[str] = []
    second = fetch(elsewhere, tmp_path / "cache", said.append)
    assert second.path == first.path
    assert said == [f"reading {elsewhere}"]


def test_any_change_of_a_directory_is_another_tree(kernel: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    keys = {fetch(kernel, cache).key}
    (kernel / "mm" / "mm_init.c").write_text("/* mm_init.c  */\n")
    keys.add(fetch(kernel, cache).key)
    (kernel / "script.sh").chmod(0o644)
    keys.add(fetch(kernel, cache).key)
    (kernel / "link").unlink()
    keys.add(fetch(kernel, cache).key)
    (kernel / "mm" / "mm_init.c").rename(kernel / "mm" / "other.c")
    (kernel / "mm" / "mm_init.c").write_text("")
    keys.add(fetch(kernel, cache).key)
    assert len(keys) == 5


@pytest.mark.parametrize("form", ["tar", "tar.gz", "tar.xz", "tar.bz2"])
@pytest.mark.parametrize("top", [True, False])
def test_a_tarball_is_unpacked(kernel: Path, tmp_path: Path, form: str, top: bool) -> None:
    ball = tarball(kernel, form, top=top)
    tree = fetch(ball, tmp_path / "cache")
    assert tree.version == "6.12.117"
    assert tree.label == f"release.{form} (sha256 {tree.key[:12]})"
    assert (tree.path / "mm" / "mm_init.c").is_file()
    said: list[str] = []
    assert fetch(ball, tmp_path / "cache", said.append) == tree
    assert said == [f"reading release.{form}"]


def test_a_tarball_named_like_a_remote_host_is_a_file(kernel: Path, tmp_path: Path) -> None:
    ball = tarball(kernel, "tar").rename(tmp_path / "host:linux.tar")
    assert fetch(ball, tmp_path / "cache").version == "6.12.117"


def test_of_a_git_tree_head_is_taken_and_changes_are_left_out(
    kernel: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    head = commit(kernel)
    tree = fetch(kernel, tmp_path / "cache")
    assert not caplog.records
    assert tree.key == git(kernel, "rev-parse", "HEAD^{tree}")
    assert tree.label == f"linux-6.12.117 (git {head[:12]})"
    assert not (tree.path / ".git").exists()
    (kernel / "mm" / "mm_init.c").write_text("not committed\n")
    again = fetch(kernel, tmp_path / "cache")
    assert again == tree
    assert (again.path / "mm" / "mm_init.c").read_text() == "/* mm_init.c */\n"
    assert "changes not committed are left out" in caplog.text


def test_a_git_tree_without_a_commit_is_bad_usage(kernel: Path, tmp_path: Path) -> None:
    git(kernel, "init", "-q")
    with pytest.raises(BadUsage, match="linux-6.12.117: git has no commit HEAD there"):
        fetch(kernel, tmp_path / "cache")


def not_there(_: Path) -> None:
    pass


def no_makefile(kernel: Path) -> None:
    (kernel / "Makefile").unlink()


def makefile_of_another_project(kernel: Path) -> None:
    (kernel / "Makefile").write_text("all:\n")


def no_mm_init(kernel: Path) -> None:
    (kernel / "mm" / "mm_init.c").unlink()


def configured_in_place(kernel: Path) -> None:
    (kernel / ".config").write_text("")


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (no_makefile, "not a kernel tree .it has no Makefile"),
        (makefile_of_another_project, "its Makefile says no VERSION and PATCHLEVEL"),
        (no_mm_init, "it has no mm/mm_init.c"),
        (configured_in_place, r"configured or built in place .it has \.config.*make mrproper"),
    ],
)
def test_a_directory_that_cannot_be_measured_is_named_with_the_reason(
    kernel: Path, tmp_path: Path, spoil: Callable[[Path], None], text: str
) -> None:
    spoil(kernel)
    with pytest.raises(BadUsage, match=f"linux-6.12.117: .*{text}") as caught:
        fetch(kernel, tmp_path / "cache")
    assert "\n" not in str(caught.value)
    assert whole_entries(tmp_path / "cache") == []


def test_a_path_that_does_not_exist_is_bad_usage(tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match="nowhere: no such file or directory"):
        fetch(tmp_path / "nowhere", tmp_path / "cache")


def test_a_tarball_of_something_else_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "cat.txt").write_text("meow")
    ball = tmp_path / "cats.tar"
    with tarfile.open(ball, "w") as opened:
        opened.add(tmp_path / "cat.txt", "cats/cat.txt")
    with pytest.raises(BadUsage, match="cats.tar: not a kernel tree"):
        fetch(ball, tmp_path / "cache")
    assert whole_entries(tmp_path / "cache") == []


@pytest.mark.parametrize("form", ["tar", "tar.gz", "tar.xz", "tar.bz2"])
def test_a_truncated_tarball_leaves_nothing(kernel: Path, tmp_path: Path, form: str) -> None:
    (kernel / "noise").write_bytes(os.urandom(100_000))
    ball = tarball(kernel, form)
    os.truncate(ball, ball.stat().st_size // 2)
    with pytest.raises(BadUsage, match=r"cannot be unpacked: (tar|gzip|xz|bzip2): ") as caught:
        fetch(ball, tmp_path / "cache")
    assert "\n" not in str(caught.value)
    assert whole_entries(tmp_path / "cache") == []


def test_a_file_that_is_no_tarball_is_bad_usage(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("remember the milk\n" * 100)
    with pytest.raises(BadUsage, match=r"notes.txt: cannot be unpacked: tar: .* not look like"):
        fetch(tmp_path / "notes.txt", tmp_path / "cache")


def test_version_holds_what_the_makefile_says(tmp_path: Path) -> None:
    tree = write_kernel(tmp_path / "rc", extraversion="-rc1")
    assert kernel_version(tree, named=tree) == "6.12.117-rc1"


def test_a_disk_that_fills_up_while_unpacking_is_said_and_leaves_nothing(
    kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ball = tarball(kernel, "tar")
    full = "/bin/tar $@; echo 'tar: mm/x: Cannot write: No space left on device' >&2; exit 2"
    put_first_on_path("tar", full, tmp_path, monkeypatch)
    with pytest.raises(CannotRunHere, match="disk full while unpacking"):
        fetch(ball, tmp_path / "cache")
    assert whole_entries(tmp_path / "cache") == []


def test_too_little_room_is_said_before_unpacking(
    kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ball = tarball(kernel, "tar")
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=1, f_frsize=4096))
    with pytest.raises(CannotRunHere, match="GB of disk, only"):
        fetch(ball, tmp_path / "cache")


@pytest.mark.parametrize("form", ["directory", "tar", "tar.xz", "git"])
def test_a_small_tree_asks_for_little_room(
    kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    if form == "git":
        commit(kernel)
    given = kernel if form in ("directory", "git") else tarball(kernel, form)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=1000, f_frsize=4096))
    assert fetch(given, tmp_path / "cache").version == "6.12.117"
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=0, f_frsize=4096))
    with pytest.raises(CannotRunHere, match="of disk, only"):
        fetch(given, tmp_path / "another cache")


def test_a_run_killed_while_unpacking_leaves_nothing_that_is_taken_for_a_tree(
    kernel: Path, tmp_path: Path
) -> None:
    """The killed run's tar continues for a while; even so the leftovers must not become a tree."""
    ball, cache, bin_dir = tarball(kernel, "tar"), tmp_path / "cache", tmp_path / "bin"
    unpacked = tmp_path / "unpacked"
    fake_program(bin_dir / "tar", f'/bin/tar "$@"; echo $$ >"{unpacked}"; exec sleep 60')
    run = (
        "import sys; from pathlib import Path; from ream.kernel.source import fetch_tree\n"
        "fetch_tree(Path(sys.argv[1]), cache=Path(sys.argv[2]), step=lambda _: None)\n"
    )
    environment = {
        **os.environ,
        "PATH": f"{bin_dir}:{os.environ['PATH']}",
        "PYTHONPATH": str(CHECKOUT / "lab"),
    }
    with subprocess.Popen([sys.executable, "-c", run, ball, cache], env=environment) as victim:
        ends_at = time.monotonic() + 60
        while not (unpacked.exists() and unpacked.read_text().strip()):
            assert time.monotonic() < ends_at
            time.sleep(0.02)
        victim.kill()
    try:
        (leftover,) = whole_entries(cache)
        assert PARTIAL in leftover
        tree = fetch(ball, cache)
        assert whole_entries(cache) == [tree.key]
        assert (tree.path / "script.sh").is_file()
    finally:
        os.kill(int(unpacked.read_text()), signal.SIGKILL)


def fake_program(path: Path, body: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def put_first_on_path(
    name: str, body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_program(tmp_path / "bin" / name, body)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")


# --- The package archive, faked at the door of archive.py ------------------------------


class FakeArchive:
    """Offers one version of a Debian package that holds a kernel's tar ball."""

    def __init__(self, kernel: Path) -> None:
        self.kernel = kernel
        self.version = "6.12.117-1"
        self.newest = "linux-source-7.3"
        self.nr_downloads = 0

    def download(
        self, base: Base, *, into: Path, have: str | None, step: Step
    ) -> tuple[Offer, Path | None]:
        package = base.package or self.newest
        offer = Offer(package, self.version, None)
        if have == str(offer):
            return offer, None
        step(f"downloading {offer}")
        self.nr_downloads += 1
        content = into / "content"
        (content / "usr" / "src").mkdir(parents=True)
        (content / "DEBIAN").mkdir()
        (content / "DEBIAN" / "control").write_text(
            f"Package: {package}\nVersion: {self.version}\nArchitecture: all\n"
            "Maintainer: x <x@localhost>\nDescription: x\n"
        )
        inner = content / "usr" / "src" / f"{package}.tar.xz"
        subprocess.run(
            ["tar", "-caf", inner, "-C", self.kernel.parent, self.kernel.name], check=True
        )
        deb = into / f"{package}_{self.version}_all.deb"
        subprocess.run(["dpkg-deb", "-b", content, deb], check=True, capture_output=True)
        return offer, deb


@pytest.fixture
def offered(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> FakeArchive:
    fake = FakeArchive(kernel)
    monkeypatch.setattr(archive, "download", fake.download)
    return fake


def test_the_archive_is_asked_only_if_the_cache_has_no_tree_of_it(
    offered: FakeArchive, tmp_path: Path
) -> None:
    first = fetch(None, tmp_path / "cache")
    assert first.label == "linux-source-6.12 6.12.117-1"
    said: list[str] = []
    assert fetch(None, tmp_path / "cache", said.append) == first
    assert (offered.nr_downloads, said) == (1, [])


def test_latest_asks_again_and_fetches_only_what_is_new(
    offered: FakeArchive, tmp_path: Path
) -> None:
    first = fetch(None, tmp_path / "cache")
    assert fetch(LATEST, tmp_path / "cache") == first
    assert offered.nr_downloads == 1
    offered.version = "6.12.118-1"
    second = fetch(LATEST, tmp_path / "cache")
    assert (second.label, offered.nr_downloads) == ("linux-source-6.12 6.12.118-1", 2)
    assert fetch(None, tmp_path / "cache") == second


def test_each_base_has_a_tree_of_its_own(
    offered: FakeArchive, kernel: Path, tmp_path: Path
) -> None:
    """Even where an archive offers the same source under two names, as this one does not."""
    first = fetch(None, tmp_path / "cache")
    (kernel / "mm" / "other.c").touch()
    offered.version = "7.3.4-1"
    other = fetch(base_named("7.3"), tmp_path / "cache")
    assert (other.label, offered.nr_downloads) == ("linux-source-7.3 7.3.4-1", 2)
    assert fetch(base_named("6.12"), tmp_path / "cache") == first
    assert fetch(base_named("7.3"), tmp_path / "cache") == other
    assert fetch(None, tmp_path / "cache") == first
    assert offered.nr_downloads == 2
    assert cached_tree(tmp_path / "cache", base_named("7.2")) is None


def test_the_newest_kernel_of_all_is_asked_for_again(
    offered: FakeArchive, kernel: Path, tmp_path: Path
) -> None:
    newest = base_named("latest")
    offered.newest, offered.version = "linux-source-7.9", "7.9.1-1"
    first = fetch(newest, tmp_path / "cache")
    assert fetch(newest, tmp_path / "cache") == first
    assert offered.nr_downloads == 1
    (kernel / "mm" / "other.c").touch()
    offered.newest, offered.version = "linux-source-7.10", "7.10.1-1"
    assert fetch(newest, tmp_path / "cache").label == "linux-source-7.10 7.10.1-1"
    found = cached_tree(tmp_path / "cache", newest)
    assert found is not None
    assert found.label == "linux-source-7.10 7.10.1-1"


def test_a_tree_that_was_given_is_not_taken_for_the_archives(
    offered: FakeArchive, kernel: Path, tmp_path: Path
) -> None:
    given = fetch(kernel, tmp_path / "cache")
    assert fetch(None, tmp_path / "cache").key != given.key
    assert offered.nr_downloads == 1


def test_without_an_archive_the_error_is_the_archives_and_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise CannotRunHere("cannot fetch linux-source-6.12")

    monkeypatch.setattr(source.archive, "download", unreachable)
    with pytest.raises(ReamError, match="cannot fetch linux-source-6.12"):
        fetch(None, tmp_path / "cache")
    assert whole_entries(tmp_path / "cache") == []
