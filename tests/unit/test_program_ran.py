# SPDX-License-Identifier: GPL-2.0-only
"""What a computer reports, in the words of the program."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ream.cli.program import beside_base
from ream.errors import ReamError, StillRunning
from ream.program.lines import load_definitions
from ream.program.ran import DEFINITIONS, Ran, Rig, computer_folder, shortest
from ream.program.text import parse
from ream.stage.native import EXIT_NOT_VERIFIED, EXIT_UNDEFINED_SYMBOL

PROGRAM = parse("p0 mmap a 1 anon private rw\np0 write a\n")
STEP = {"line": 1, "step": "mmap", "returned": 0, "state": "07"}
END = {"end": None, "digest": "1f"}
FAULT = {
    "fault": 11,
    "file": None,
    "line": None,
    "row": "2",
    "address": 0x40,
    "registers": {"rip": 0x1010},
    "calls": [0x2004, 0x10],
}


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """A computer of two functions, whose reports are made up."""
    (tmp_path / "mm").mkdir()
    (tmp_path / "mm/a.c").write_text("one;\n\tVM_WARN_ON(page);\n\tWARN_ON(irqs_disabled());\n")
    its = Rig.__new__(Rig)
    computer: Any = SimpleNamespace(tree=tmp_path, said=(0, []))
    computer.report = lambda *_, **__: computer.said
    its.computer = computer
    its._definitions = load_definitions(computer_folder() / DEFINITIONS)
    its._functions = [0x1000, 0x2000], ["zap", "unmap"]
    return its


def ran(rig: Rig, code: int, *said: dict[str, Any]) -> Ran:
    computer: Any = rig.computer
    computer.said = code, list(said)
    return rig.run(PROGRAM)


def test_what_steps_return_and_the_state_at_the_end_are_told(rig: Rig) -> None:
    timed = {"timed_ns": 9, "cpu_ns": 8, "nr_timed": 1}
    parts = {"line": 1, "parts": {"rss": "2"}}
    its = ran(rig, 0, STEP, timed, parts, END)
    assert (its.alarms, its.returned, its.digest, its.state) == ((), {1: 0}, "1f", "07")
    assert its.timed is not None
    assert (its.timed.ns, its.timed.cpu_ns, its.timed.nr) == (9, 8, 1)
    assert its.parts == {1: {"rss": "2"}}


def test_alarms_and_warnings_come_in_the_order_of_lines(rig: Rig) -> None:
    alarm = {"line": 2, "alarm": "frame 0x10 is lost"}
    warning = {"line": 1, "warning": "mm/a.c:2"}
    its = ran(rig, EXIT_NOT_VERIFIED, alarm, warning, END)
    warns = "the kernel warns at mm/a.c:2: VM_WARN_ON(page);"
    assert its.alarms == ((1, warns), (2, "frame 0x10 is lost"))
    assert its.kind == "the kernel warns at VM_WARN_ON(page);"


def test_a_warning_of_interrupts_is_none(rig: Rig) -> None:
    assert ran(rig, 0, {"line": 1, "warning": "mm/a.c:3"}, END).alarms == ()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({}, "crash at address 0x40, in zap() < unmap()"),
        ({"fault": 14}, "it does not come back: in zap() < unmap()"),
        ({"file": "mm/a.c", "line": 7}, "BUG at mm/a.c:7, in zap() < unmap()"),
    ],
)
def test_a_crash_is_an_alarm_with_its_functions(rig: Rig, fault: Any, said: str) -> None:
    assert ran(rig, 70, STEP, {**FAULT, **fault}).alarms == ((2, said),)


def test_the_end_of_a_kernel_that_panics_is_an_alarm(rig: Rig) -> None:
    its = ran(rig, 71, STEP, {"end": "the kernel panics: no memory", "line": 2})
    assert its.alarms == ((2, "the kernel panics: no memory"),)
    assert ran(rig, 9).alarms == ((0, "it ended with 9"),)


def test_a_program_that_outlives_its_deadline_does_not_come_back(rig: Rig) -> None:
    def outlives(*_: Any, **__: Any) -> Any:
        raise StillRunning("computer: still running after 120 s")

    computer: Any = rig.computer
    computer.report = outlives
    assert rig.run(PROGRAM).alarms == ((0, "it does not come back"),)


def test_what_the_computer_lacks_is_an_error(rig: Rig) -> None:
    with pytest.raises(ReamError, match=r"bdi_init\(\) is not hosted: in zap\(\) < unmap\(\)"):
        ran(rig, EXIT_UNDEFINED_SYMBOL, {**FAULT, "symbol": "bdi_init"})
    with pytest.raises(ReamError, match="the computer refuses a line: mmap: too few"):
        ran(rig, 2, {"refused": "mmap", "why": "too few"})


def test_what_the_base_does_wrong_as_well_is_not_the_shortest() -> None:
    wrong = Ran(((2, "frame 0x10 is lost"),))

    class Known:
        """Wrong with whatever program has this verb."""

        def __init__(self, verb: str) -> None:
            self.verb = verb

        def run(self, program: Any, *_: Any, **__: Any) -> Ran:
            return wrong if any(step.verb == self.verb for step in program) else Ran()

    series: Any = Known("mmap")
    base: Any = Known("write")
    text = "p0 mmap a 1 anon private rw\np0 mlock a\np0 write a\n"
    found = shortest(series, parse(text), Ran(((3, "frame 0x10 is lost"),)), within_s=5, base=base)
    assert [step.verb for step in found] == ["mmap"]


def test_a_fault_of_the_base_alone_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Ran(alarms=((2, "_refcount is 3, and 2 refer to it"),))
    monkeypatch.setattr("ream.cli.program.rig_of", lambda _: SimpleNamespace(run=lambda _: wrong))
    source: Any = SimpleNamespace(without_series=lambda: None)
    differs, words = beside_base(PROGRAM, Ran(), source)
    assert differs == (2, "wrong")
    assert words.endswith("something is wrong without it: _refcount is 3, and 2 refer to it")
    assert beside_base(PROGRAM, wrong, source) == (None, "")
