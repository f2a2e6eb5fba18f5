# SPDX-License-Identifier: GPL-2.0-only
"""Series as lists post them: a thread as archives give it, and what it says that it stands on."""

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ream.errors import BadUsage, CannotRunHere
from ream.kernel.mailbox import Ground
from ream.kernel.posted import is_message_id, thread_in
from ream.kernel.series import Series, load_series

BASE = "0123456789abcdef0123456789abcdef01234567"
BEFORE_IT = ("a" * 40, "b" * 40)
DIFF = "diff --git a/mm/{0}.c b/mm/{0}.c\n--- a/mm/{0}.c\n+++ b/mm/{0}.c\n@@ -1 +1 @@\n-old\n+{1}\n"


def mail(subject: str, body: str, *, own: str, to: str = "") -> str:
    """A mail as a public inbox gives it."""
    answers = f"In-Reply-To: <{to}@x>\nReferences: <{to}@x>\n" if to else ""
    return (
        "From mboxrd@z Thu Jan  1 00:00:00 1970\nFrom: A Developer <dev@localhost>\n"
        "Date: Thu, 1 Jan 2026 00:00:00 +0000\nContent-Type: text/plain; charset=UTF-8\n"
        f"Subject: {subject}\nMessage-ID: <{own}@x>\n{answers}\n{body}\n"
    )


def patch(tags: str, name: str, to: str, *, own: str, cover: str) -> str:
    why = "Why.\n\nReviewed-by: A Reader <reader@localhost>\nSigned-off-by: Dev <dev@localhost>\n"
    return mail(
        f"[{tags}] {name}", f"{why}---\n{DIFF.format(name, to)}-- \n2.47\n", own=own, to=cover
    )


def posted(version: int) -> list[str]:
    """A cover letter that says what it stands on, two patches, and what others say of them."""
    tags, own = (f"PATCH v{version}" if version > 1 else "PATCH"), f"v{version}-"
    ground = f"base-commit: {BASE}\n" + "".join(f"prerequisite-patch-id: {i}\n" for i in BEFORE_IT)
    return [
        mail(f"[{tags} 0/2] faster", f"What.\n\n mm/a.c | 2 +-\n\n{ground}", own=f"{own}0"),
        patch(f"{tags} 1/2", "a", f"v{version}", own=f"{own}1", cover=f"{own}0"),
        patch(f"{tags} 2/2", "b", f"v{version}", own=f"{own}2", cover=f"{own}0"),
        mail(
            f"Re: [{tags} 1/2] a",
            "> -old\n> +new\nTested-by: A Reader <reader@localhost>\n",
            own=f"{own}r",
            to=f"{own}1",
        ),
        mail(
            f"Re: [{tags} 2/2] b",
            f"Rather so:\n{DIFF.format('b', 'x')}",
            own=f"{own}s",
            to=f"{own}2",
        ),
    ]


OTHERS = patch("PATCH", "c", "c", own="others", cover="elsewhere")
THREAD = "".join((*posted(1), *posted(2), OTHERS)).encode()


def bodies(series: Series) -> list[str]:
    return [
        line for one in series.patches for line in one.body.decode().split("\n") if "+v" in line
    ]


def test_a_thread_of_an_archive_is_its_patches_and_what_they_stand_on(tmp_path: Path) -> None:
    (tmp_path / "t.mbox.gz").write_bytes(gzip.compress("".join(posted(2)).encode()))
    series = load_series(tmp_path / "t.mbox.gz")
    assert [one.subject for one in series.patches] == ["a", "b"]
    assert {one.ground for one in series.patches} == {Ground(BASE, BEFORE_IT)}


def test_a_thread_with_lines_of_windows_is_the_same_diffs(tmp_path: Path) -> None:
    text = "".join(posted(2))
    (tmp_path / "unix.mbox").write_text(text)
    (tmp_path / "windows.mbox").write_text(text, newline="\r\n")
    one, other = (load_series(tmp_path / f"{name}.mbox") for name in ("unix", "windows"))
    assert one.diff_id == other.diff_id
    assert other.patches[0].ground == Ground(BASE, BEFORE_IT)


@pytest.mark.parametrize(("own", "version"), [("v1-1", 1), ("v2-0", 2), ("v1-r", None)])
def test_the_mail_that_is_named_says_which_version_of_its_thread(
    own: str, version: int | None
) -> None:
    inside, found = thread_in(THREAD, f"{own}@x")
    assert found == version
    assert len(inside) == len(posted(1))  # of the other threads on the page none


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("20260101000000.1-2-dev@localhost", True),
        ("<20260101000000.1-2-dev@localhost>", True),
        ("https:/lists.example/all/20260101.1-2-dev@localhost", True),
        ("linux@v6.12.patch", False),  # a file of this name
        ("v5.mbx", False),
    ],
)
def test_a_message_id_is_told_from_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, meant: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "linux@v6.12.patch").write_text("")
    assert is_message_id(Path(words)) is meant


@pytest.fixture
def nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration of git, and no way to any archive but what it names."""
    config = tmp_path / "gitconfig"
    config.write_text("")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.chdir(tmp_path)
    return config


@pytest.fixture
def archive(nobody_else: Path) -> Iterator[list[str]]:
    """An archive of mails on this machine; the pages that it was asked for."""
    asked: list[str] = []

    class Archive(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            there = "v2-0" in self.path
            self.send_response(200 if there else 404)
            self.end_headers()
            self.wfile.write(gzip.compress(THREAD) if there else b"")

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Archive)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    where = f"http://127.0.0.1:{server.server_port}"
    nobody_else.write_text(f"[lore]\n\tfallback = {where}\n")
    yield asked
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_message_id_is_the_series_that_its_archive_has(archive: list[str]) -> None:
    series = load_series(Path("v2-0@x"))
    assert archive == ["/all/v2-0%40x/t.mbox.gz"]
    assert bodies(series) == ["+v2", "+v2"]
    assert series.name == "v2-0-x"
    assert series.patches[0].ground.commit == BASE


def test_a_message_id_that_the_archive_has_not_is_bad_usage(archive: list[str]) -> None:
    with pytest.raises(BadUsage, match=r"^v9-0@x: no such mail: its archive at .* answers 404$"):
        load_series(Path("v9-0@x"))
    assert archive


@pytest.mark.usefixtures("nobody_else")
def test_without_a_network_a_message_id_says_so_in_one_line() -> None:
    with pytest.raises(CannotRunHere, match=r"cannot be reached; give the mails as a file") as said:
        load_series(Path("v2-0@x"))
    assert "\n" not in str(said.value)
