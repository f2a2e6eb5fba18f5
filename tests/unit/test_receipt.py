# SPDX-License-Identifier: GPL-2.0-only
import getpass
import hashlib
import json
import socket
import subprocess
from pathlib import Path

import pytest

from ream.kernel.series import Patch, Series
from ream.record.machine import read_machine
from ream.record.receipt import Receipt, SeriesEntry, anonymous, read_ream


def git(directory: Path, *words: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", "-C", str(directory), *identity, *words], check=True)


def test_a_receipt_is_an_object_that_json_can_hold(receipt: Receipt) -> None:
    value = json.loads(json.dumps(receipt.to_object()))
    assert value["schema"] == 1
    assert value["machine"]["caches"][0]["size_bytes"] == 48 << 10
    assert value["kernel"]["variants"]["published"][0]["patches"][1]["sha256"] == "22" * 32
    assert value["settings"]["seed"] == 42


def test_opaque_parts_are_kept_as_they_are_given(receipt: Receipt) -> None:
    parts = {"before": {"objects": ["mm/mm_init.o"], "n": 3, "none": None}}
    given = Receipt(**{**dict(receipt), "symbols": parts, "stubs": {"dump_stack": 0}})
    value = given.to_object()
    assert (value["symbols"], value["stubs"]) == (parts, {"dump_stack": 0})


def test_nothing_in_a_receipt_tells_whose_machine_it_is(
    receipt: Receipt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/alice")
    mine = Receipt(
        **{
            **dict(receipt),
            "machine": read_machine(),
            "kernel": receipt.kernel.model_copy(update={"tree": "/home/alice/linux"}),
            "settings": receipt.settings.model_copy(
                update={"command": "./ream run --tree /home/alice/linux --series /home/bob/x.mbox"}
            ),
            "symbols": {"/home/alice/.cache/ream/tree": ["/home/alice/a.o"]},
        }
    )
    text = json.dumps(mine.to_object())
    assert "--tree ~/linux --series ~/x.mbox" in text
    assert "/home/" not in text
    for owner in ("alice", "bob"):
        assert owner not in text
    machine = json.dumps(mine.to_object()["machine"])
    assert f'"{socket.gethostname()}"' not in machine
    assert f'"{getpass.getuser()}"' not in machine


@pytest.mark.parametrize(
    ("home", "text", "expected"),
    [
        ("/var/lib/bob", "/var/lib/bob/linux", "~/linux"),
        ("/var/lib/bob", "--tree=/var/lib/bob", "--tree=~"),
        ("/var/lib/bob", "/var/lib/bobby/x", "/var/lib/bobby/x"),
        ("/var/lib/bob", "/srv/var/lib/bob/x", "/srv/var/lib/bob/x"),
        ("/", "/srv/linux", "/srv/linux"),
        ("/home/a", "/home/alice/linux", "~/linux"),
    ],
)
def test_a_home_directory_becomes_a_tilde(
    monkeypatch: pytest.MonkeyPatch, home: str, text: str, expected: str
) -> None:
    monkeypatch.setenv("HOME", home)
    assert anonymous({text: [text, 1, None]}) == {expected: [expected, 1, None]}


def test_a_series_is_named_by_its_patchset_hash() -> None:
    series = Series("mine", (Patch("0001-a.patch", "mm: a", b"diff"),))
    entry = SeriesEntry.of(series)
    assert (entry.name, entry.id) == ("mine", series.id)
    assert entry.patches[0].sha256 == series.patches[0].sha256


def test_a_series_is_recorded_as_it_came_and_by_its_diffs() -> None:
    diff = b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
    mails = [b"Subject: [PATCH] x\n\n" + diff, b"Subject: [PATCH v2] y\n\n" + diff + b"-- \n2.39\n"]
    one, other = (
        SeriesEntry.of(Series("mine", (Patch("0001-x.patch", "x", mail),))) for mail in mails
    )
    assert (one.diff_id, one.patches[0].diff_sha256) == (
        other.diff_id,
        other.patches[0].diff_sha256,
    )
    assert one.id != other.id
    assert [hashlib.sha256(mail).hexdigest() for mail in mails] == [
        its.patches[0].sha256 for its in (one, other)
    ]


def test_the_patches_fit_a_line_of_the_table(receipt: Receipt) -> None:
    assert receipt.patches_line() == "published: zone-device (2 patches, aaaaaaaaaaaa)"
    (published,) = receipt.kernel.variants["published"]
    single = published.model_copy(update={"patches": published.patches[:1]})
    kernel = receipt.kernel.model_copy(update={"variants": {"published": (single,)}})
    said = receipt.model_copy(update={"kernel": kernel}).patches_line()
    assert said == "published: zone-device (1 patch, aaaaaaaaaaaa)"


def test_our_own_commit_is_named_where_there_is_one(tmp_path: Path) -> None:
    assert read_ream(tmp_path).commit is None
    git(tmp_path, "init", "-q")
    assert read_ream(tmp_path).commit is None
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "one")
    clean = read_ream(tmp_path)
    assert clean.commit is not None
    assert (len(clean.commit), clean.dirty) == (40, False)
    (tmp_path / "file").write_text("")
    assert read_ream(tmp_path).dirty is True
    assert read_ream(tmp_path).line().endswith(", with changes)")


def test_a_copy_within_somebody_elses_repository_does_not_name_their_commit(
    tmp_path: Path,
) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "theirs")
    (tmp_path / "ream").mkdir()
    assert read_ream(tmp_path / "ream").commit is None
