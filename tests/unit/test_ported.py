# SPDX-License-Identifier: GPL-2.0-only
"""What a file beside a list of folders makes of the patch of its name."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ports import difference, store
from ream.errors import BadUsage
from ream.kernel.diff import changed
from ream.kernel.series import load_series

FIRST, SECOND = "0001-a.patch", "0002-b.patch"
DIFF = "--- a/mm/x.c\n+++ b/mm/x.c\n@@ -5,3 +5,3 @@ void f(void)\n one\n-{0}\n+{1}\n three\n"
MAIL = "Date: {3}\nSubject: [PATCH {0}/2] {1}\n\nWhy.\n---\n mm/x.c | 2 +-\n\n{2}"
WORDS = "Left out: the base does so.\n"


@pytest.fixture
def port(tmp_path: Path) -> Path:
    """The folder of a port, beside it the series of two patches that it is a port of."""
    topic, port = tmp_path / "topic", tmp_path / "9.9" / "topic"
    for folder in (topic, port):
        folder.mkdir(parents=True)
    (topic / FIRST).write_text(MAIL.format(1, "a", DIFF.format("two", 2), "Monday"))
    (topic / SECOND).write_text(MAIL.format(2, "b", DIFF.format(2, 22), "Monday"))
    (topic / "vm.config").write_text("CONFIG_NEW=m\n")
    (port / "series").write_text("# What differs.\n../../topic\n")
    return port


def bodies(folder: Path) -> list[str]:
    return [one.body.decode() for one in load_series(folder).patches]


def test_a_patch_that_no_file_stands_in_for_is_the_listed_one(port: Path) -> None:
    assert load_series(port).patches == load_series(port.parents[1] / "topic").patches


def test_a_difference_changes_a_patch_and_nothing_else_of_it(port: Path) -> None:
    header = f"Why this differs.\n\n--- a/{FIRST}\n+++ b/{FIRST}\n"
    (port / FIRST).write_text(
        f"{header}@@ -9,3 +9,3 @@\n @@ -5,3 +5,3 @@ void f(void)\n- one\n+ 1\n -two\n"
    )
    listed, meant = (load_series(one).patches for one in (port.parents[1] / "topic", port))
    assert meant[0].body == listed[0].body.replace(b"\n one\n", b"\n 1\n")
    assert (meant[0].subject, meant[1]) == (listed[0].subject, listed[1])


def test_a_whole_patch_or_its_diff_stands_in_for_the_listed_one(port: Path) -> None:
    (port / SECOND).write_text(DIFF.format(2, 33))
    before = load_series(port.parents[1] / "topic").patches[1]
    alone = load_series(port).patches[1]
    assert alone.body == before.body.replace(b"+22", b"+33")
    (port / SECOND).write_text(mail := MAIL.format(2, "c", DIFF.format(2, 33), "Friday"))
    whole = load_series(port).patches[1]
    assert (whole.body.decode(), whole.subject) == (mail, "b")
    assert alone.options == whole.options == (("vm.config", "CONFIG_NEW=m\n"),)


def test_a_file_of_words_leaves_a_patch_out(port: Path) -> None:
    (port / FIRST).write_text(WORDS)
    assert [one.name for one in load_series(port).patches] == [SECOND]


def test_a_difference_that_does_not_fit_is_bad_usage(port: Path) -> None:
    (port / FIRST).write_text(f"--- a/{FIRST}\n+++ b/{FIRST}\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n")
    with pytest.raises(BadUsage, match=rf"{FIRST}: @@ -1,2 \+1,2 @@ does not fit .*topic/{FIRST}"):
        load_series(port)


def test_a_hunk_that_moved_fits_where_its_lines_are_alone() -> None:
    text = b"0\na\nb\nc\nb\n"
    assert changed(text, b"@@ -1,2 +1,2 @@\n a\n-b\n+B\n") == b"0\na\nB\nc\nb\n"
    with pytest.raises(ValueError, match="@@ -1 "):
        changed(text, b"@@ -1 +1 @@\n-b\n+B\n")
    assert changed(text, b"@@ -5 +5 @@\n-b\n+B\n") == b"0\na\nb\nc\nB\n"


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_a_stored_difference_gives_the_port_again(old: list[str], new: list[str]) -> None:
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (old, new))
    assert changed(before.encode(), difference("x", before, after).encode()) == after.encode()


def test_ports_are_stored_as_what_differs_but_for_what_tools_find_out(port: Path) -> None:
    moved = DIFF.format("two", 2).replace("@@ -5,3 +5,3 @@ void f(void)", "@@ -7,3 +7,3 @@ int f()")
    (port / FIRST).write_text(MAIL.format(1, "a", moved, "Friday"))
    (port / SECOND).write_text(MAIL.format(3, "b", DIFF.format(2, 33), "Friday"))
    meant = bodies(port)
    store(port)
    assert not (port / FIRST).exists()
    assert f"--- a/{SECOND}\n" in (port / SECOND).read_text()
    stored = [(port / SECOND).read_text()]
    store(port)
    assert [(port / SECOND).read_text()] == stored
    numbers = {
        "Friday": "Monday",
        "@@ -7,3 +7,3 @@ int f()": "@@ -5,3 +5,3 @@ void f(void)",
        "3/2": "2/2",
    }
    for there, here in numbers.items():
        meant = [text.replace(there, here) for text in meant]
    assert bodies(port) == meant


def test_a_patch_that_no_listed_folder_has_is_named(port: Path) -> None:
    (port / "0003-c.patch").write_text(MAIL.format(3, "c", DIFF.format(1, 3), "Monday"))
    with pytest.raises(BadUsage, match=r"0003-c\.patch: no folder that .* has a patch of that"):
        load_series(port)


def test_a_list_of_its_own_folder_is_refused(port: Path) -> None:
    (port / "series").write_text(".\n")
    with pytest.raises(BadUsage, match="lists its own folder"):
        load_series(port)


def test_options_stay_if_the_last_patch_is_left_out(port: Path) -> None:
    (port / SECOND).write_text(WORDS)
    (only,) = load_series(port).patches
    assert only.options == (("vm.config", "CONFIG_NEW=m\n"),)


@pytest.mark.parametrize(
    ("hunk", "result"),
    [("@@ -2,0 +3 @@\n+new\n", "a\nb\nnew\nc\n"), ("@@ -0,0 +1 @@\n+new\n", "new\na\nb\nc\n")],
)
def test_a_hunk_that_only_adds_stands_behind_the_line_that_it_names(hunk: str, result: str) -> None:
    difference = f"--- a/x\n+++ b/x\n{hunk}"
    assert changed(b"a\nb\nc\n", difference.encode()) == result.encode()
