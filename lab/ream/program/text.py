# SPDX-License-Identifier: GPL-2.0-only
"""Reads the text of a program: one step per line, `#` before a comment."""

from pathlib import Path

from ream.nearest import hint
from ream.program.collection import text_of
from ream.program.grammar import FORMS, Form
from ream.program.kinds import Process, Value, WrongWord, quoted
from ream.program.scene import resolve
from ream.program.step import Program, ProgramError, Step

MOST_LINES = 100_000


def load_program(path: Path) -> Program:
    """Read a file, or `FILE:NAME` of a file with many programs.

    Raises BadUsage, or ProgramError with all lines that are wrong.
    """
    return parse(text_of(path), str(path))


def parse(text: str | bytes, where: str = "program") -> Program:
    """Read a text. Raises ProgramError with all lines that are wrong, each named `where`:LINE."""
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    lines = text.split("\n")
    if len(lines) > MOST_LINES:
        raise ProgramError(where, [(MOST_LINES + 1, f"more than {MOST_LINES} lines; shorten it")])
    steps, faults = [], []
    for number, line in enumerate(lines, start=1):
        words = line.split("#", 1)[0].split()
        try:
            if words:
                steps.append(_step(number, words))
        except WrongWord as fault:
            faults.append((number, str(fault)))
    if faults:
        raise ProgramError(where, faults)
    program = Program(tuple(steps))
    resolve(program, where)
    return program


def _step(line: int, words: list[str]) -> Step:
    if measured := words[0] == "measure":
        words = words[1:]
    if not words:
        raise WrongWord("measure: no step; write the step behind it that is to be timed")
    process = None
    if words[0] not in FORMS and words[0][0] == "p" and words[0][1:].isdecimal():
        process = Process().parse(words[0])
        words = words[1:]
    if not words:
        raise WrongWord(f"p{process}: no step; write what the process does")
    form = _form(words[0], process)
    try:
        values, flags = _arguments(form, words[1:])
    except WrongWord as fault:
        raise WrongWord(f"{form.verb}: {fault} (usage: {form.usage()})") from fault
    return Step(form.verb, process, values, flags, measured, line)


def _form(verb: str, process: int | None) -> Form:
    if (form := FORMS.get(verb)) is None:
        way_out = hint(verb, FORMS) or f"; steps are {', '.join(FORMS)}"
        raise WrongWord(f"{quoted(verb)} is no step{way_out}")
    if form.process and process is None:
        raise WrongWord(f"{verb}: a process does this; write `p0 {verb}`")
    if not form.process and process is not None:
        raise WrongWord(f"{verb}: no process does this; leave p{process} out")
    return form


def _arguments(
    form: Form, words: list[str]
) -> tuple[tuple[tuple[str, Value], ...], tuple[str, ...]]:
    operands: list[str] = []
    options: dict[str, str] = {}
    flags: set[str] = set()
    for word in words:
        name, is_option, value = word.partition("=")
        if is_option and name in form.options and name not in options:
            options[name] = value
        elif word in form.flags and len(operands) >= len(form.operands) - form.nr_optional:
            flags.add(word)
        elif not is_option and len(operands) < len(form.operands):
            operands.append(word)
        else:
            raise WrongWord(f"{quoted(word)} is more than the step has, or is there twice")
    missing = list(form.operands)[len(operands) : len(form.operands) - form.nr_optional]
    required = [name for name, option in form.options.items() if option.required]
    missing += [f"{name}=" for name in required if name not in options]
    if missing:
        raise WrongWord(f"too few words: no {', '.join(missing)}")
    values: dict[str, Value] = {}
    for (name, kind), word in zip(form.operands.items(), operands, strict=False):
        values[name] = kind.parse(word)
    for name, option in form.options.items():
        if name in options:
            values[name] = option.kind.parse(options[name])
    return tuple(values.items()), tuple(flag for flag in form.flags if flag in flags)
