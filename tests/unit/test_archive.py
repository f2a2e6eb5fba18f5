# SPDX-License-Identifier: GPL-2.0-only
"""What apt prints, what we make of it, and what we say when it fails."""

import os
from pathlib import Path

import pytest

from ream.errors import CannotRunHere
from ream.kernel import archive
from ream.kernel.archive import Offer, candidate, download, mirror_of, size
from ream.kernel.base import Base

POLICY = """\
linux-source-6.12:
  Installed: (none)
  Candidate: 6.12.117-1~deb12u1
  Version table:
     6.12.117-1~deb12u1 500
        500 http://archive/debian-security bookworm-security/main amd64 Packages
     6.12.115-2~deb12u1 500
"""

TARGETS = """\
http://elsewhere/apt/ tools Tools
http://archive/debian-security/ bookworm-security Debian
http://archive/debian/ bookworm-updates Debian
http://archive/debian/ bookworm Debian
"""
# An apt whose archive is three files: offer, updated-offer, and what a download leaves.
APT_CACHE = r"""
offer=$HERE/offer
case "$*" in *Dir::State::Lists*) offer=$HERE/updated-offer ;; esac
case "$*" in
*policy*) echo "linux-source-6.12:"; echo "  Candidate: $(cat "$offer" || echo '(none)')" ;;
*show*) echo "Package: linux-source-6.12"; echo "Size: 153476148" ;;
esac
"""
APT_GET = r"""
echo "$*" >>"$HERE/calls"
last=; for last; do :; done
case "$*" in
*indextargets*) cat "$HERE/targets" ;;
*update) [ -e "$HERE/updated-offer" ] || { echo "E: Failed to fetch lists" >&2; exit 100; } ;;
*download*)
	version=${last#*=}
	grep -qx "$version" "$HERE/downloadable" ||
		{ echo "W: something else" >&2; echo "E: 404 Not Found" >&2; exit 100; }
	echo deb >"linux-source-6.12_${version}_all.deb" ;;
esac
"""


BASE = Base("6.12", "linux-source-6.12")


class Apt:
    def __init__(self, here: Path) -> None:
        self.here = here

    def offers(self, *, known: str | None, after_update: str | None, downloadable: str) -> None:
        for name, value in (("offer", known), ("updated-offer", after_update)):
            if value is not None:
                (self.here / name).write_text(value)
        (self.here / "downloadable").write_text(f"{downloadable}\n")

    def updated(self) -> bool:
        return "update" in (self.here / "calls").read_text()


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Apt:
    for name, body in (("apt-cache", APT_CACHE), ("apt-get", APT_GET)):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{body}")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("HERE", str(tmp_path))
    (tmp_path / "targets").write_text(TARGETS)
    return Apt(tmp_path)


def fetch(into: Path, have: str | None = None, base: Base = BASE) -> tuple[Offer, Path | None]:
    (into / "room").mkdir()
    have = f"linux-source-6.12 {have}" if have else None
    return download(base, into=into / "room", have=have, step=lambda _: None)


def test_the_candidate_is_read_from_apts_policy() -> None:
    assert candidate(POLICY) == "6.12.117-1~deb12u1"
    assert candidate(POLICY.replace("6.12.117-1~deb12u1", "(none)")) is None
    assert candidate("") is None


def test_the_size_is_unknown_rather_than_nought() -> None:
    assert size("Package: x\nSize: 153476148\n") == 153476148
    assert size("Package: x\n") is None
    assert size("Size: many\n") is None


def test_what_the_systems_lists_offer_is_fetched_without_an_update(
    apt: Apt, tmp_path: Path
) -> None:
    apt.offers(known="6.12.117-1", after_update=None, downloadable="6.12.117-1")
    offer, package = fetch(tmp_path)
    assert offer == Offer("linux-source-6.12", "6.12.117-1", 153476148)
    assert package is not None
    assert package.name == "linux-source-6.12_6.12.117-1_all.deb"
    assert not apt.updated()


def test_lists_that_are_out_of_date_are_fetched_anew(apt: Apt, tmp_path: Path) -> None:
    apt.offers(known="6.12.115-1", after_update="6.12.117-1", downloadable="6.12.117-1")
    offer, package = fetch(tmp_path)
    assert (offer.version, package is not None, apt.updated()) == ("6.12.117-1", True, True)


def test_missing_lists_are_fetched_into_our_own_directory(apt: Apt, tmp_path: Path) -> None:
    apt.offers(known=None, after_update="6.12.117-1", downloadable="6.12.117-1")
    assert fetch(tmp_path)[0].version == "6.12.117-1"
    update = (apt.here / "calls").read_text().splitlines()[0]
    assert f"Dir::State::Lists={tmp_path}/room/apt/lists" in update


def test_a_version_we_have_is_not_fetched_again(apt: Apt, tmp_path: Path) -> None:
    apt.offers(known="6.12.115-1", after_update="6.12.117-1", downloadable="6.12.117-1")
    assert fetch(tmp_path, have="6.12.117-1") == (
        Offer("linux-source-6.12", "6.12.117-1", 153476148),
        None,
    )


def test_an_archive_that_cannot_be_reached_is_one_line_with_a_way_out(
    apt: Apt, tmp_path: Path
) -> None:
    apt.offers(known="6.12.117-1", after_update=None, downloadable="nothing")
    with pytest.raises(
        CannotRunHere, match="6.12: E: Failed to fetch lists; .*--tree PATH"
    ) as caught:
        fetch(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_package_that_vanishes_is_one_line_with_what_apt_said(apt: Apt, tmp_path: Path) -> None:
    apt.offers(known=None, after_update="6.12.117-1", downloadable="nothing")
    with pytest.raises(
        CannotRunHere, match="6.12: E: 404 Not Found; is a package archive reachable"
    ):
        fetch(tmp_path)


def test_a_machine_without_apt_is_told_to_give_a_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotRunHere, match="no apt-get here.*--tree PATH"):
        fetch(tmp_path)


# --- Other suites than the machine's ---------------------------------------------------

NEWER = Base("7.3", "linux-source-6.12", ("later-backports", "unstable"))


def test_suites_of_a_base_are_asked_of_the_machines_own_mirror(
    apt: Apt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "keys.gpg").touch()
    monkeypatch.setattr(archive, "KEYRING", tmp_path / "keys.gpg")
    apt.offers(known="6.12.115-1", after_update="6.12.117-1", downloadable="6.12.117-1")
    offer, package = fetch(tmp_path, base=NEWER)
    assert (offer.version, package is not None) == ("6.12.117-1", True)
    assert (tmp_path / "room" / "apt" / "sources.list").read_text() == (
        f"deb [signed-by={tmp_path}/keys.gpg] http://archive/debian/ later-backports main\n"
        f"deb [signed-by={tmp_path}/keys.gpg] http://archive/debian/ unstable main\n"
    )
    asked = [line for line in (apt.here / "calls").read_text().splitlines() if "update" in line]
    assert len(asked) == 1
    assert f"Dir::Etc::SourceList={tmp_path}/room/apt/sources.list" in asked[0]
    assert "Dir::Etc::SourceParts=/dev/null" in asked[0]


def test_a_machine_without_the_keys_of_other_suites_is_told_so(
    apt: Apt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apt.offers(known=None, after_update="6.12.117-1", downloadable="6.12.117-1")
    monkeypatch.setattr(archive, "KEYRING", tmp_path / "none.gpg")
    with pytest.raises(CannotRunHere, match="in later-backports, unstable of .* no keys of it; gi"):
        fetch(tmp_path, base=NEWER)


def test_a_mirror_is_one_of_a_plain_release_of_debian() -> None:
    assert mirror_of(TARGETS) == "http://archive/debian/"
    assert mirror_of("http://archive/debian/ bookworm \n") == "http://archive/debian/"
    assert mirror_of("http://archive/debian-security/ bookworm-security Debian\n") is None
    assert mirror_of("http://archive/ubuntu/ noble Ubuntu\n") is None
    assert mirror_of("") is None
