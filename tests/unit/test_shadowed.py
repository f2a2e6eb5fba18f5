# SPDX-License-Identifier: GPL-2.0-only
"""Whether a hypervisor shadows page tables: what is read, and what is measured."""

from pathlib import Path

import pytest

from ream import doctor
from ream.stage import shadowed
from ream.stage.shadowed import GUEST_TYPE, first_touch_ratio, shadowed_warnings, why_shadowed


def test_a_paravirtual_guest_says_so_itself(tmp_path: Path) -> None:
    path = tmp_path / GUEST_TYPE
    path.parent.mkdir(parents=True)
    path.write_text("PV\n")
    assert why_shadowed(tmp_path, lambda: 1.0) == "/sys/hypervisor/guest_type says PV"
    path.write_text("HVM\n")
    assert why_shadowed(tmp_path, lambda: 1.0) is None


@pytest.mark.parametrize(("ratio", "is_shadowed"), [(None, False), (2.3, False), (40.0, True)])
def test_a_first_touch_that_takes_long_is_a_fault_of_the_hypervisor(
    tmp_path: Path, ratio: float | None, is_shadowed: bool
) -> None:
    why = why_shadowed(tmp_path, lambda: ratio)
    assert (why is not None) == is_shadowed
    assert why is None or "takes 40 times as long as the second" in why


def test_this_machine_maps_pages_before_they_are_touched() -> None:
    ratio = first_touch_ratio()
    assert ratio is not None
    assert ratio > 0


def test_runs_and_doctor_say_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadowed, "first_touch_ratio", lambda: 40.0)
    (warning,) = shadowed_warnings()
    assert "a hypervisor shadows this machine's page tables" in warning
    finding = next(one for one in doctor.examine() if one.subject == "page tables")
    assert (finding.state, "shadows them" in finding.text) == ("warn", True)
    monkeypatch.setattr(shadowed, "first_touch_ratio", lambda: 2.0)
    assert shadowed_warnings() == ()
