# SPDX-License-Identifier: GPL-2.0-only
"""Writes a program as one file of C, which performs the same steps by system calls.

`reproducer_calls.h` has the functions that perform calls. What it has no function for, user space
cannot perform; such steps are skipped and named. Functions that no step needs are left out.
`reproducer_show.h` is for comparisons, `reproducer_folios.h` for timing, and `reproducer_files.h`
writes the kernel's settings, which stay as they are written.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from ream.program.contents import Expected, Prediction, predict
from ream.program.scene import GROUPS, Call, last_calls, resolve
from ream.program.step import Program
from ream.program.text import parse

_HOME = Path(__file__).parent
_CALLS, _FILES, _SHOWING, _FOLIOS, _MAIN = (
    _HOME / f"reproducer_{name}.h" for name in ("calls", "files", "show", "folios", "main")
)
_TABLE, _CASES, _SHOW = "/* TABLE */\n", "/* CASES */\n", "/* SHOW */\n"
_FUNCTION = re.compile(r"static (?:\w+ )+\*?(\w+)\(([^)]*)\)\n\{")
_VARIABLE = re.compile(r"^static (?:\w+ )+\*?(\w+)(?:\[\w+\])*(?: = [^;]*)?;", re.MULTILINE)
_FIRST_LINES = "// SPDX-License-Identifier: GPL-2.0-only\n#define _GNU_SOURCE\n"


def reproducer(
    program: Program, *, shows: bool = False, folios: bool = False, sets: bool = False
) -> str:
    """Write the C program. Raises ProgramError for steps that do not fit those before them.

    The lines that it prints are those of the program, or of its canonical text if it has none.
    shows: it prints VMAs and rss after each step, and reads all contents at the end. folios: before
    and after the measured step it prints which folios the memory of its process is in. sets: it
    writes files of /proc and /sys, which changes the machine that it runs on.
    """
    if not all(step.line for step in program):
        program = parse(str(program))
    chosen = ((_FILES, sets), (_SHOWING, shows), (_FOLIOS, folios))
    more = [path for path, is_wanted in chosen if is_wanted]
    before, after = "\n".join(map(_body, (_CALLS, *more))), _body(_MAIN)
    functions = {name[3:]: names for name, names in _functions(before) if name.startswith("do_")}
    calls = (*resolve(program), *(last_calls(program) if shows else ()))
    predicted = dict(zip(map(id, calls), predict(calls), strict=True))
    words = {step.line: str(step) for step in program}
    cases, table = [], []
    for line, group in groupby((call for call in calls if call.line), key=attrgetter("line")):
        its = list(group)
        process = its[0].arguments.get("process", "NO_PROCESS")
        comment = f"\t/* {words.get(line, its[0].name)} */\n"
        is_performed = _function_of(its[0]) in functions
        skipped = "NULL" if is_performed else f'"{its[0].name}"'
        table.append(f"\t{{ {line}, {process}, {skipped} }},{comment}")
        if is_performed:
            cases.append(f"\tcase {line}:{comment}")
            cases += [
                f"\t\t{word};\n" for word in _statements(its, predicted, functions, folios=folios)
            ]
    made = after.replace(_TABLE, "".join(table)).replace(_CASES, "".join(cases))
    made = made.replace(_SHOW, "\t\tshow_spaces();\n" if shows else "")
    return _FIRST_LINES + _needed(before, made) + made


def unperformed(program: Program, *, sets: bool = False) -> frozenset[str]:
    """The names of steps that the C program skips, since user space cannot perform them.

    A function of the kernel stands behind "call". sets: as reproducer() has it.
    """
    bodies = (_CALLS, _FILES) if sets else (_CALLS,)
    functions = {name for body in bodies for name, _ in _functions(_body(body))}
    its = (call for call in resolve(program) if call.line)
    calls = (call for call in its if f"do_{_function_of(call)}" not in functions)
    return frozenset(
        f"call {one.words['function']}" if one.name == "call" else one.name for one in calls
    )


def _function_of(call: Call) -> str:
    """The name of the function that performs a call, behind "do_"; groups have no files there."""
    if call.name == "call":
        return f"call_{call.words['function']}"
    return "group_file" if GROUPS in call.words.get("file", "") else call.name


def _body(path: Path) -> str:
    """A file without its first line, which is that of the licence."""
    return path.read_text(encoding="utf-8").partition("\n")[2]


def _functions(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Names of the functions of a text, each with the names of its parameters."""
    for match in _FUNCTION.finditer(text):
        parameters = (one.split()[-1] for one in match[2].split(","))
        yield match[1], tuple(one.lstrip("*") for one in parameters if one != "void")


def _needed(text: str, by: str) -> str:
    """Parts of a text that `by` needs; each stands behind what it needs itself."""
    kept = by
    for part in reversed(re.split(r"\n\n(?=\S)", text.rstrip())):
        names = [name for name, _ in _functions(part)] or _VARIABLE.findall(part)
        if not names or any(re.search(rf"\b{name}\b", kept) for name in names):
            kept = f"{part}\n\n{kept}"
    return kept.removesuffix(by)


def _statements(
    calls: Iterable[Call],
    predicted: Mapping[int, Prediction],
    functions: Mapping[str, tuple[str, ...]],
    *,
    folios: bool,
) -> Iterator[str]:
    """What the pages of a step must hold, and its calls, of which the first gives the result."""
    result = "returned = "
    for call in calls:
        prediction = predicted[id(call)]
        yield from map(_expectation, prediction.expected)
        function = _function_of(call)
        given = {**call.arguments, **{name: f'"{word}"' for name, word in call.words.items()}}
        words = f"do_{function}({', '.join(str(given[name]) for name in functions[function])})"
        if call.measured:
            words = f"(begin_timed(), end_timed({words}))"
            if folios:
                words = f"(look_at_folios(0), look_at_folios({words}))"
        if prediction.returned is not None:
            words = f"assume({prediction.returned}, {words})"
        yield result + words
        result = ""
    yield "break"


def _expectation(its: Expected) -> str:
    content = its.content
    if not content.line:
        return f"expect_same({its.page}, {its.nr}, {content.value})"
    return f"expect({its.page}, {its.nr}, {content.line}, {content.index})"
