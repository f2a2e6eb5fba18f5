# SPDX-License-Identifier: GPL-2.0-only
"""Which mails of a mailbox are the series: versions, gaps, answers, and mails that come twice."""

from pathlib import Path

import pytest

from ream.errors import BadUsage
from ream.kernel.series import Series, load_series

COVER = "What it is about.\n\n mm/a.c | 2 +-\n"


def diff(name: str, to: str = "new") -> str:
    file = f"mm/{name}.c"
    head = f"diff --git a/{file} b/{file}\n--- a/{file}\n+++ b/{file}\n"
    return f"{head}@@ -1 +1 @@\n-old\n+{to}\n"


def mail(subject: str, body: str | None = None, *, own: str = "", to: str = "") -> str:
    """A mail of a thread: own is its Message-ID, to what it answers to."""
    title = subject.rpartition("] ")[2]
    headers = f"Message-ID: <{own}@x>\n" if own else ""
    headers += f"In-Reply-To: <{to}@x>\nReferences: <{to}@x>\n" if to else ""
    return (
        "From mboxrd@z Thu Jan  1 00:00:00 1970\nFrom: A Developer <dev@localhost>\n"
        f"Subject: {subject}\n{headers}\nWhy.\n---\n{diff(title) if body is None else body}"
        "-- \n2.39.5\n\n"
    )


def series(nr: int, *, version: str = "", tags: str = "PATCH") -> list[str]:
    """A cover letter and nr patches called 1, 2, ..."""
    subjects = [f"[{tags}{version} {at}/{nr}] {at}" for at in range(nr + 1)]
    first, *others = subjects
    return [mail(first, COVER), *map(mail, others)]


def loaded(tmp_path: Path, *mails: str, version: int | None = None) -> Series:
    (tmp_path / "t.mbox").write_text("".join(mails))
    return load_series(tmp_path / "t.mbox", version=version)


def titles(one: Series) -> list[str]:
    return [patch.subject for patch in one.patches]


def refused(tmp_path: Path, *mails: str, version: int | None = None) -> str:
    with pytest.raises(BadUsage) as caught:
        loaded(tmp_path, *mails, version=version)
    said = str(caught.value)
    assert "\n" not in said
    return said.removeprefix(f"{tmp_path}/")


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        ([2], "t.mbox: 2/5 is missing; "),
        ([1, 2, 5], "t.mbox: 1/5, 2/5 and 5/5 are missing; "),
        ([5], "t.mbox: 5/5 is missing; "),
        ([2, 3, 4, 5], "t.mbox: 2/5, 3/5, 4/5 and 5/5 are missing; "),
    ],
)
def test_patches_that_are_missing_are_named(tmp_path: Path, gone: list[int], said: str) -> None:
    there = [one for at, one in enumerate(series(5)) if at not in gone]
    assert refused(tmp_path, *there).startswith(said)


def test_of_many_missing_patches_the_first_are_named(tmp_path: Path) -> None:
    said = refused(tmp_path, series(40)[1], series(40)[40])
    assert "2/40, 3/40, 4/40, 5/40, 6/40, 7/40 and 32 more are missing" in said


def test_two_versions_are_named_with_what_there_is_of_each(tmp_path: Path) -> None:
    both = (*series(3, version=" v2")[:3], *series(2, version=" v3"))
    assert refused(tmp_path, *both) == (
        "t.mbox: 2 versions of a series inside: v2 (2 patches without 3/3), v3 (2 patches);"
        " choose one with --version N"
    )


def test_a_version_that_is_wanted_is_taken_and_no_other(tmp_path: Path) -> None:
    both = (*series(2), *series(3, version=" v3"))
    assert titles(loaded(tmp_path, *both, version=1)) == ["1", "2"]
    assert titles(loaded(tmp_path, *both, version=3)) == ["1", "2", "3"]
    assert refused(tmp_path, *both, version=2) == "t.mbox: no v2 inside; there is v1 and v3"


def test_a_gap_in_the_version_that_is_wanted_is_named_with_it(tmp_path: Path) -> None:
    both = (*series(3, version=" v2"), *series(3, version=" v3")[:3])
    assert refused(tmp_path, *both, version=3).startswith("t.mbox: 3/3 of v3 is missing; ")


@pytest.mark.parametrize(
    ("tags", "version"),
    [
        ("RFC PATCH", " v2"),
        ("PATCH RESEND", " v2"),
        ("PATCH net-next", " v2"),
        ("PATCH mm-unstable", " v2"),
        ("RFC][PATCH", " v2"),
        ("PATCH", "v2"),
        ("PATCH", " V2"),
        ("PATCH 6.12.y", " v2"),
    ],
)
def test_other_tags_do_not_hide_version_and_number(tmp_path: Path, tags: str, version: str) -> None:
    mails = series(3, version=version, tags=tags)
    assert titles(loaded(tmp_path, *reversed(mails), version=2)) == ["1", "2", "3"]
    assert "2/3 of v2 is missing" in refused(tmp_path, *mails[:2], mails[3])


def test_a_kernel_in_the_tags_is_no_version(tmp_path: Path) -> None:
    mails = series(2, tags="PATCH v6.12")
    assert titles(loaded(tmp_path, *mails, version=1)) == ["1", "2"]


def test_answers_of_a_thread_are_left_out_even_with_a_diff(tmp_path: Path) -> None:
    mails = [
        *series(2),
        mail("Re: [PATCH 1/2] 1", f"> {diff('1')}".replace("\n", "\n> "), to="a"),
        mail("Re: [PATCH 2/2] 2", diff("better"), to="b"),
        mail("AW: [PATCH 1/2] 1", diff("besser"), to="b"),
        mail("[tip: x86/mm] 1", diff("1"), to="c"),
    ]
    assert titles(loaded(tmp_path, *mails)) == ["1", "2"]


def test_a_thread_of_patches_without_tags_loses_none(tmp_path: Path) -> None:
    """git format-patch -k --thread makes such mails."""
    mails = (mail("a", own="1"), mail("mm: b", diff("b"), to="1"), mail("[mm] c", to="1"))
    assert titles(loaded(tmp_path, *mails)) == ["a", "mm: b", "c"]


def test_several_answers_with_diffs_and_no_patch_are_refused(tmp_path: Path) -> None:
    mails = (mail("Re: [PATCH] a"), mail("Re: [PATCH] b"))
    assert "only answers (Re:) hold a diff" in refused(tmp_path, *mails)
    assert titles(loaded(tmp_path, mail("Re: [PATCH] a"))) == ["a"]


def test_a_mail_that_came_by_two_lists_is_taken_once(tmp_path: Path) -> None:
    twice = mail("[PATCH] a", own="a")
    assert titles(loaded(tmp_path, twice, mail("[PATCH] b", own="b"), twice)) == ["a", "b"]
    assert titles(loaded(tmp_path, mail("x"), mail("x", diff("y")))) == ["x", "x"]


def test_two_mails_of_one_id_with_unlike_diffs_are_refused(tmp_path: Path) -> None:
    mails = (mail("[PATCH] a", own="a"), mail("[PATCH] a", diff("a", "other"), own="a"))
    assert "two mails with the id <a@x> hold unlike diffs" in refused(tmp_path, *mails)


def test_a_patch_that_was_sent_again_is_taken_once_and_a_changed_one_is_refused(
    tmp_path: Path,
) -> None:
    again, changed = mail("[PATCH RESEND 1/2] 1"), mail("[PATCH RESEND 1/2] one", diff("1", "more"))
    assert titles(loaded(tmp_path, *series(2), again)) == ["1", "2"]
    said = refused(tmp_path, *series(2), changed)
    assert said == "t.mbox: two unlike patches are 1/2: '1' and 'one'; take one out"


def test_two_series_of_one_version_are_refused(tmp_path: Path) -> None:
    said = refused(tmp_path, *series(2), *series(3))
    assert said == "t.mbox: patches of several series inside (n/2 and n/3); give one a file"


def test_files_of_patches_one_behind_the_other_are_in_their_order(tmp_path: Path) -> None:
    more = mail("[PATCH] more")
    assert titles(loaded(tmp_path, *series(2), more)) == ["1", "2", "more"]
    assert titles(loaded(tmp_path, more, *series(2))) == ["more", "1", "2"]
    *_, first, second = series(2)
    assert "'more' has no number" in refused(tmp_path, second, first, more)
    assert "2/2 is missing" in refused(tmp_path, first, more)


def test_a_patch_without_a_number_among_those_that_have_is_named(tmp_path: Path) -> None:
    said = refused(tmp_path, *series(2), mail("[PATCH] a-fix", own="a"))
    assert said.startswith("t.mbox: 'a-fix' has no number among patches that have; ")


def test_a_single_mail_of_a_series_is_a_patch_by_itself(tmp_path: Path) -> None:
    assert titles(loaded(tmp_path, series(5)[2])) == ["2"]


REROLL = (
    mail("[PATCH 0/3] x", COVER, own="0"),
    *(mail(f"[PATCH {at}/3] {at}", own=str(at), to="0") for at in (1, 2, 3)),
    mail("Re: [PATCH 2/3] 2", "No.\n", own="no", to="2"),
    mail("[PATCH v2 2/3] 2b", own="2b", to="2"),
)


def test_a_new_version_of_a_single_patch_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    assert "v1 (3 patches), v2 (2/3, in place of earlier ones)" in refused(tmp_path, *REROLL)
    assert titles(loaded(tmp_path, *REROLL, version=2)) == ["1", "2b", "3"]
    assert titles(loaded(tmp_path, *REROLL, version=1)) == ["1", "2", "3"]


def test_a_third_version_of_a_single_patch_stands_on_the_second(tmp_path: Path) -> None:
    third = mail("[PATCH v3 3/3] 3c", own="3c", to="3")
    assert titles(loaded(tmp_path, *REROLL, third, version=3)) == ["1", "2b", "3c"]


def test_a_whole_new_version_with_a_gap_is_not_filled_from_the_old_one(tmp_path: Path) -> None:
    v2 = (
        mail("[PATCH v2 1/3] 1b", own="1b", to="0"),
        mail("[PATCH v2 3/3] 3b", own="3b", to="0"),
    )
    assert "2/3 of v2 is missing" in refused(tmp_path, *REROLL[:4], *v2, version=2)
    cover = mail("[PATCH v2 0/3] x", COVER, own="0b", to="0")
    assert "1/3 and 3/3 of v2 are missing" in refused(tmp_path, *REROLL, cover, version=2)


def folder(tmp_path: Path, **files: str) -> Path:
    place = tmp_path / "mine"
    place.mkdir()
    for name, text in files.items():
        (place / f"{name}.patch").write_text(text)
    return place


def test_two_versions_in_one_folder_are_refused_or_chosen(tmp_path: Path) -> None:
    """A second run of git format-patch leaves such a folder."""
    second = {f"v2-000{at}-x": one for at, one in enumerate(series(2, version=" v2"))}
    third = {f"v3-000{at}-x": one for at, one in enumerate(series(2, version=" v3"))}
    place = folder(tmp_path, **second, **third)
    with pytest.raises(BadUsage, match=r"v2 \(2 patches\), v3 \(2 patches\); choose one"):
        load_series(place)
    names = [patch.name for patch in load_series(place, version=3).patches]
    assert names == ["v3-0001-x.patch", "v3-0002-x.patch"]


def test_a_folder_may_end_early_but_has_no_gaps(tmp_path: Path) -> None:
    files = {f"000{at}-x": one for at, one in enumerate(series(5)) if at < 4}
    place = folder(tmp_path, **files)
    assert titles(load_series(place)) == ["1", "2", "3"]
    (place / "0002-x.patch").unlink()
    with pytest.raises(BadUsage, match="mine: 2/5 is missing; .* quilt `series` file"):
        load_series(place)
    (place / "series").write_text("0001-x.patch\n0003-x.patch\n")
    assert titles(load_series(place)) == ["1", "3"]


def test_answers_among_the_files_of_a_folder_are_left_out(tmp_path: Path) -> None:
    place = folder(tmp_path, a=mail("[PATCH] a"), b=mail("Re: [PATCH] a", "Good.\n"))
    assert titles(load_series(place)) == ["a"]
