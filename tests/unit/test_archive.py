# SPDX-License-Identifier: GPL-2.0-only
"""What apt prints, what we make of it, and what we say when it fails."""

import os
from pathlib import Path

import pytest

from ream.errors import CannotRunHere
from ream.kernel.archive import Offer, candidate, download, size

POLICY = """\
linux-source-6.12:
  Installed: (none)
  Candidate: 6.12.117-1~deb12u1
  Version table:
     6.12.117-1~deb12u1 500
        500 http://archive/debian-security bookworm-security/main amd64 Packages
     6.12.115-2~deb12u1 500
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
*update) [ -e "$HERE/updated-offer" ] || { echo "E: Failed to fetch lists" >&2; exit 100; } ;;
*download*)
	version=${last#*=}
	grep -qx "$version" "$HERE/downloadable" ||
		{ echo "W: something else" >&2; echo "E: 404 Not Found" >&2; exit 100; }
	echo deb >"linux-source-6.12_${version}_all.deb" ;;
esac
"""


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
    return Apt(tmp_path)


def fetch(into: Path, have: str | None = None) -> tuple[Offer, Path | None]:
    (into / "room").mkdir()
    return download("linux-source-6.12", into=into / "room", have=have, step=lambda _: None)


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
