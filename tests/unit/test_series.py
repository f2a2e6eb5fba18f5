# SPDX-License-Identifier: GPL-2.0-only
"""Patches as people keep and send them."""

import base64
import gzip
import hashlib
import lzma
import quopri
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ream.errors import BadUsage
from ream.kernel.diff import hunks
from ream.kernel.series import Patch, Series, files, load_series, prefixes

DIFF = """\
diff --git a/mm/mm_init.c b/mm/mm_init.c
index 1111111..2222222 100644
--- a/mm/mm_init.c
+++ b/mm/mm_init.c
@@ -1,3 +1,3 @@ void f(void)
 one
-two
+2
 three
"""

COVER = "Eight patches that make it faster.\n\n mm/mm_init.c | 2 +-\n"


def mail(subject: str, body: str = DIFF, headers: str = "") -> str:
    return (
        "From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001\n"
        "From: A Developer <dev@localhost>\n"
        "Date: Thu, 1 Jan 2026 00:00:00 +0000\n"
        f"Subject: {subject}\n{headers}"
        f"\nWhy this is right.\n\nFrom the start it was slow.\n---\n{body}--\n2.39.5\n\n"
    )


def subjects(series: Series) -> list[str]:
    return [patch.subject for patch in series.patches]


def test_a_plain_diff_is_a_series_of_one(tmp_path: Path) -> None:
    (tmp_path / "my fix.patch").write_text(DIFF)
    series = load_series(tmp_path / "my fix.patch")
    assert series == Series("my-fix", (Patch("my fix.patch", "my fix.patch", DIFF.encode()),))


def test_a_diff_without_gits_header_is_a_patch(tmp_path: Path) -> None:
    (tmp_path / "old.diff").write_text(DIFF[DIFF.index("---") :])
    assert len(load_series(tmp_path / "old.diff").patches) == 1


def test_a_mail_gives_its_subject_without_tags(tmp_path: Path) -> None:
    (tmp_path / "0002-x.patch").write_text(mail("[PATCH v3 2/7] mm: set\n the [head] first"))
    series = load_series(tmp_path / "0002-x.patch", name="mine")
    assert (series.name, subjects(series)) == ("mine", ["mm: set the [head] first"])
    assert series.patches[0].body == (tmp_path / "0002-x.patch").read_bytes()


def test_a_directory_is_read_by_name_without_its_cover_letter(tmp_path: Path) -> None:
    (tmp_path / "0002-b.patch").write_text(mail("[PATCH 2/2] b"))
    (tmp_path / "0001-a.patch").write_text(mail("[PATCH 1/2] a"))
    (tmp_path / "0000-cover-letter.patch").write_text(mail("[PATCH 0/2] *** x ***", COVER))
    (tmp_path / "README").write_text("not a patch")
    series = load_series(tmp_path)
    assert subjects(series) == ["a", "b"]
    assert series.name == tmp_path.name


def test_quilts_order_goes_before_names(tmp_path: Path) -> None:
    (tmp_path / "a.patch").write_text(mail("a"))
    (tmp_path / "b.patch").write_text(mail("b"))
    (tmp_path / "unused.patch").write_text(mail("unused"))
    (tmp_path / "series").write_text("# mine\nb.patch\n\na.patch -p1 # later\n")
    assert subjects(load_series(tmp_path)) == ["b", "a"]


@pytest.mark.parametrize(
    ("listed", "text"),
    [
        ("a.patch -R\n", "series: line 1: only -pN is understood"),
        ("gone.patch\n", "gone.patch: No such file"),
        ("# none\n", "no patch inside"),
    ],
)
def test_a_quilt_series_that_cannot_be_followed_is_bad_usage(
    tmp_path: Path, listed: str, text: str
) -> None:
    (tmp_path / "a.patch").write_text(DIFF)
    (tmp_path / "series").write_text(listed)
    with pytest.raises(BadUsage, match=text):
        load_series(tmp_path)


def test_a_mailbox_is_split_at_mails_and_not_at_sentences(tmp_path: Path) -> None:
    box = tmp_path / "thread.mbox"
    box.write_text(
        mail("[PATCH 0/2] cover", COVER)
        + mail("[PATCH 1/2] a")
        + mail("Re: [PATCH 1/2] a", "> diff --git a/x b/x\n> --- a/x\n> +++ b/x\nLooks good.\n")
        + mail("[PATCH 2/2] b")
    )
    series = load_series(box)
    assert [patch.name for patch in series.patches] == ["0001-a.patch", "0002-b.patch"]
    assert series.name == "thread"
    assert all(b"From the start" in patch.body for patch in series.patches)


def test_mails_that_carry_numbers_are_put_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "box").write_text("".join(mail(f"[PATCH {n}/3] p{n}") for n in (3, 1, 2)))
    assert subjects(load_series(tmp_path / "box")) == ["p1", "p2", "p3"]


def test_mails_without_numbers_stay_in_the_order_of_the_mailbox(tmp_path: Path) -> None:
    (tmp_path / "box").write_text("".join(mail(f"p{n}") for n in (3, 1, 2)))
    assert subjects(load_series(tmp_path / "box")) == ["p3", "p1", "p2"]


def encoded(how: str) -> str:
    body = DIFF.replace("+2", "+zwölf = 2").encode()
    text = quopri.encodestring(body) if how == "quoted-printable" else base64.encodebytes(body)
    headers = f"Content-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: {how}\n"
    start = "From 0 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] =?utf-8?q?zw=C3=B6lf?=\n"
    return f"{start}{headers}\n{text.decode()}"


@pytest.mark.parametrize("how", ["quoted-printable", "base64"])
def test_a_mail_that_was_encoded_for_transport_is_decoded(tmp_path: Path, how: str) -> None:
    (tmp_path / "x.eml").write_text(encoded(how))
    (patch,) = load_series(tmp_path / "x.eml").patches
    assert patch.subject == "zwölf"
    assert "+zwölf = 2\n three\n" in patch.body.decode()


def test_carriage_returns_of_a_mail_program_are_taken_off(tmp_path: Path) -> None:
    (tmp_path / "x.patch").write_bytes(mail("x").replace("\n", "\r\n").encode())
    assert b"\r" not in load_series(tmp_path / "x.patch").patches[0].body


def test_a_carriage_return_that_is_part_of_the_change_stays(tmp_path: Path) -> None:
    (tmp_path / "x.patch").write_text(DIFF.replace("+2\n", "+2\r\n"), newline="")
    assert b"+2\r\n" in load_series(tmp_path / "x.patch").patches[0].body


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "x.patch: empty"),
        (b" \n\n", "x.patch: empty"),
        (b"remember the milk\n", "x.patch: no patch inside"),
        (mail("[PATCH 0/2] cover", COVER).encode(), "x.patch: no patch inside"),
        (b"\x28\xb5\x2f\xfd\x04", "x.patch: compressed; unpack it first .`unzstd`"),
        (
            gzip.compress(DIFF.encode(), mtime=0)[:-9],
            "x.patch: what it holds compressed is damaged",
        ),
        (lzma.compress(DIFF.encode())[:-9], "x.patch: what it holds compressed is damaged"),
        (gzip.compress(b"\0ELF", mtime=0), r"x.patch: not a patch \(binary data\)"),
        (b"\x7fELF\x02\x01\x01\x00", r"x.patch: not a patch \(binary data\)"),
        (DIFF.encode("utf-16"), r"x.patch: not a patch \(binary data\)"),
    ],
)
def test_a_file_without_a_patch_is_one_line(tmp_path: Path, content: bytes, text: str) -> None:
    (tmp_path / "x.patch").write_bytes(content)
    with pytest.raises(BadUsage, match=text) as caught:
        load_series(tmp_path / "x.patch")
    assert "\n" not in str(caught.value)


def test_a_missing_path_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match="nowhere: No such file or directory"):
        load_series(tmp_path / "nowhere")


def test_an_empty_directory_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match=r"no \*.patch, \*.diff or \*.eml"):
        load_series(tmp_path)


def test_a_patch_of_a_directory_that_lost_its_diff_is_not_left_out(tmp_path: Path) -> None:
    (tmp_path / "0001-a.patch").write_text(mail("[PATCH 1/2] a"))
    (tmp_path / "0002-b.patch").write_text(mail("[PATCH 2/2] b", "\n"))
    with pytest.raises(BadUsage, match="0002-b.patch: no patch inside"):
        load_series(tmp_path)


def test_a_mailbox_among_the_files_of_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "all.mbox").write_text(mail("a") + mail("b"))
    with pytest.raises(BadUsage, match="2 patches inside, where one is expected"):
        load_series(tmp_path)


def test_the_id_is_kcidbs_patchset_hash() -> None:
    patches = (Patch("a", "a", b"first"), Patch("b", "b", b"second"))
    lines = "".join(f"{hashlib.sha256(body).hexdigest()}\n" for body in (b"first", b"second"))
    assert Series("x", patches).id == hashlib.sha256(lines.encode()).hexdigest()
    assert Series("x", patches[::-1]).id != Series("x", patches).id


def test_the_last_patch_of_a_folder_has_its_options(tmp_path: Path) -> None:
    for name in ("0001-a.patch", "0002-b.patch"):
        (tmp_path / name).write_text(DIFF)
    (tmp_path / "vm.config").write_text("CONFIG_NEW=m\n")
    first, last = load_series(tmp_path).patches
    assert (first.options, last.options) == ((), (("vm.config", "CONFIG_NEW=m\n"),))


def test_prefixes_end_with_the_whole_series() -> None:
    patches = tuple(Patch(name, name, name.encode()) for name in "abc")
    steps = prefixes(Series("mine", patches))
    assert [step.name for step in steps] == ["mine-1of3", "mine-2of3", "mine-3of3"]
    assert [step.patches for step in steps] == [patches[:1], patches[:2], patches]


def test_hunks_are_counted_per_file_and_by_their_lengths() -> None:
    body = b"""\
--- a/mm/a.c
+++ b/mm/a.c
@@ -10,3 +10,2 @@ void f(void)
 one
--- a/not/a/header
 three
@@ -40 +39 @@
-x
+y
\\ No newline at end of file
--- /dev/null
+++ b/mm/new.c
@@ -0,0 +1,2 @@
+a
+b
"""
    found = [(hunk.file, hunk.number, hunk.old_start, hunk.header) for hunk in hunks(body)]
    assert found == [
        ("mm/a.c", 1, 10, "@@ -10,3 +10,2 @@ void f(void)"),
        ("mm/a.c", 2, 40, "@@ -40 +39 @@"),
        ("mm/new.c", 1, 0, "@@ -0,0 +1,2 @@"),
    ]


def test_a_rename_touches_both_names() -> None:
    body = b"diff --git a/mm/Kconfig b/mm/Kconfig.old\nrename from mm/Kconfig\n"
    assert files(Patch("x", "x", body)) == {"mm/Kconfig", "mm/Kconfig.old"}


@pytest.mark.parametrize(("ends", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_a_mailbox_may_be_compressed_as_lore_gives_it(
    tmp_path: Path, ends: str, pack: Callable[[bytes], bytes]
) -> None:
    text = mail("[PATCH 1/2] a") + mail("[PATCH 2/2] b")
    (tmp_path / f"t.mbox{ends}").write_bytes(pack(text.encode()))
    series = load_series(tmp_path / f"t.mbox{ends}")
    assert (series.name, subjects(series)) == ("t", ["a", "b"])
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / f"0001-a.patch{ends}").write_bytes(pack(mail("[PATCH] a").encode()))
    assert subjects(load_series(folder)) == ["a"]


def test_a_small_file_that_unpacks_to_a_large_one_is_not_unpacked_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.patch.gz").write_bytes(gzip.compress(DIFF.encode() * 1000))
    monkeypatch.setattr("ream.kernel.series.LARGEST_BYTES", len(DIFF) * 999)
    with pytest.raises(BadUsage, match=r"x.patch.gz: not a patch \(no series is larger than"):
        load_series(tmp_path / "x.patch.gz")


def test_the_same_diff_is_the_same_patch_however_it_was_sent(tmp_path: Path) -> None:
    """Subject, author, date, message, blob names, git's version: none of them is in the kernel."""
    first = mail("[PATCH] mm: a")
    second = (
        mail("[PATCH v2] mm: b", headers="Message-ID: <other@localhost>\n")
        .replace("A Developer <dev@", "Somebody <else@")
        .replace("1 Jan 2026", "2 Feb 2026")
        .replace("Why this is right.", "Why this is still right.")
        .replace("index 1111111..2222222", "index 111111111111..222222222222")
        .replace("--\n2.39.5", "-- \n2.47.1")
    )
    names = ("a.patch", "b.patch", "c.patch")
    for name, text in zip(names, (first, second, DIFF), strict=True):
        (tmp_path / name).write_text(text)
    a, b, bare = (load_series(tmp_path / name) for name in names)
    assert a.diff_id == b.diff_id == bare.diff_id
    assert len({one.id for one in (a, b, bare)}) == 3  # what came as mail is recorded as it came


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("+2\n", "+3\n"),
        ("-two\n+2\n", "+2\n-two\n"),
        (" one\n", " One\n"),
        ("mm/mm_init.c", "mm/memory.c"),
        ("@@ -1,3 +1,3 @@", "@@ -7,3 +7,3 @@"),
        ("index 1", "old mode 100644\nnew mode 100755\nindex 1"),
        (" three\n", " three\n\\ No newline at end of file\n"),
    ],
)
def test_another_diff_is_another_patch(was: str, becomes: str) -> None:
    assert was in DIFF
    one, other = (Patch("x", "x", text.encode()) for text in (DIFF, DIFF.replace(was, becomes)))
    assert one.diff_sha256 != other.diff_sha256


def test_a_rename_or_a_mode_alone_is_a_change() -> None:
    head = "diff --git a/mm/a.c b/mm/b.c\n"
    texts = ("", "rename from mm/a.c\nrename to mm/b.c\n", "copy from mm/a.c\ncopy to mm/b.c\n")
    patches = [Patch("x", "x", f"Subject: x\n\n{head}{text}".encode()) for text in texts]
    assert len({patch.diff_sha256 for patch in patches}) == 3


def test_a_blank_line_that_a_mail_program_emptied_is_the_same_context() -> None:
    blank = DIFF.replace(" three\n", " \n")
    one, other = (Patch("x", "x", text.encode()) for text in (blank, blank.replace(" \n", "\n")))
    assert one.diff_sha256 == other.diff_sha256


def test_a_binary_change_is_part_of_the_diff() -> None:
    head = "diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\nliteral 4\n"
    bodies = (
        f"{head}{data}\n\nliteral 0\nHcmV?d00001\n\n-- \n2.39\n" for data in ("LcabC", "LcabD")
    )
    one, other = (Patch("x", "x", body.encode()) for body in bodies)
    assert one.diff_sha256 != other.diff_sha256


def test_the_commit_that_a_series_is_made_for_is_in_its_cover_letter_or_a_patch(
    tmp_path: Path,
) -> None:
    trailer = f"base-commit: {'0123456789' * 4}\n"
    cover = mail("[PATCH 0/2] cover", COVER + trailer)
    (tmp_path / "t.mbox").write_text(cover + mail("[PATCH 1/2] a") + mail("[PATCH 2/2] b"))
    (tmp_path / "x.patch").write_text(mail("[PATCH] a", DIFF + trailer))
    (tmp_path / "y.patch").write_text(mail("[PATCH] a"))
    named = [
        {patch.ground.commit for patch in load_series(tmp_path / name).patches}
        for name in ("t.mbox", "x.patch", "y.patch")
    ]
    assert named == [{"0123456789" * 4}, {"0123456789" * 4}, {None}]


@given(st.binary(max_size=400) | st.text(max_size=400).map(str.encode))
def test_whatever_a_file_holds_it_is_a_series_or_bad_usage(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("any") / "x.patch"
    for prefix in (b"", b"From 0 Mon Sep 17 00:00:00 2001\n", DIFF.encode(), b"Subject: "):
        path.write_bytes(prefix + content)
        try:
            said = load_series(path).patches[0].name
        except BadUsage as refused:
            said = str(refused)
        assert "\n" not in said
