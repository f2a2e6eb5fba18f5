# SPDX-License-Identifier: GPL-2.0-only
"""A program as values: its steps, and how they are printed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ream.errors import BadUsage
from ream.program.grammar import FORMS, Form
from ream.program.kinds import Kind, Place, Range, Value, Word, Words

MOST_ERRORS = 10


@dataclass(frozen=True)
class Step:
    """One step: its words, read, in the order of its form."""

    verb: str
    process: int | None = None
    values: tuple[tuple[str, Value], ...] = ()
    """Operands and options by name; those that are left out are missing."""
    flags: tuple[str, ...] = ()
    measured: bool = False
    line: int = field(default=0, compare=False)
    """The step's line in the text; 0 for a step that is in no text."""

    @property
    def form(self) -> Form:
        """The form that the step follows."""
        return FORMS[self.verb]

    def get(self, name: str) -> Value | None:
        """Value of an operand or an option, None if it is left out."""
        return dict(self.values).get(name)

    def number(self, name: str) -> int:
        """Value that is a number and present."""
        value = self.get(name)
        assert isinstance(value, int)
        return value

    def word(self, name: str) -> str:
        """Value that is a word and present."""
        value = self.get(name)
        assert isinstance(value, str)
        return value

    def range(self, name: str = "area") -> Range:
        """Value that is a range and present."""
        value = self.get(name)
        assert isinstance(value, Range)
        return value

    def place(self, name: str) -> Place:
        """Value that is a place and present."""
        value = self.get(name)
        assert isinstance(value, Place)
        return value

    def kind(self, name: str) -> Kind:
        """Kind of the operand or option of this name."""
        form = self.form
        return form.operands[name] if name in form.operands else form.options[name].kind

    @property
    def shape(self) -> str:
        """The step without names, numbers and options."""
        operands = self.form.operands
        its = (
            kind.show(value)
            for name, kind in operands.items()
            if isinstance(kind, Word | Words) and (value := self.get(name)) is not None
        )
        return " ".join((self.verb, *self.flags, *its))

    def __str__(self) -> str:
        """The step in canonical words."""
        words = ["measure"] if self.measured else []
        if self.process is not None:
            words.append(f"p{self.process}")
        words.append(self.verb)
        shown = {name: self.kind(name).show(value) for name, value in self.values}
        words += [shown[name] for name in self.form.operands if name in shown]
        words += self.flags
        words += [f"{name}={shown[name]}" for name in self.form.options if name in shown]
        return " ".join(words)


def new_step(
    verb: str,
    process: int | None = None,
    *flags: str,
    **values: Value | None,
) -> Step:
    """Make a step from values by name, of which those that are None are left out."""
    form = FORMS[verb]
    order = (*form.operands, *form.options)
    given = {name.rstrip("_"): value for name, value in values.items() if value is not None}
    assert not set(given) - set(order), (verb, given)
    return Step(
        verb,
        process,
        tuple((name, given[name]) for name in order if name in given),
        tuple(flag for flag in form.flags if flag in flags),
    )


@dataclass(frozen=True)
class Program:
    """The steps of a program, in order."""

    steps: tuple[Step, ...]

    def __str__(self) -> str:
        """The canonical text, which parses to the same program."""
        return "".join(f"{step}\n" for step in self.steps)

    def __iter__(self) -> Iterator[Step]:
        """Iterate over the steps."""
        return iter(self.steps)

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.steps)


class ProgramError(BadUsage):
    """A program is malformed; each line of the text names a file, a line and what is wrong."""

    def __init__(self, where: str, faults: Sequence[tuple[int, str]]) -> None:
        shown = [f"{where}:{line}: {text}" for line, text in faults[:MOST_ERRORS]]
        if len(faults) > MOST_ERRORS:
            shown.append(f"{where}: {len(faults) - MOST_ERRORS} further lines are wrong")
        super().__init__("\n".join(shown))


def measured_line(program: Program, where: str) -> int:
    """The line of the step to time; raises ProgramError if there is none."""
    for step in program:
        if step.measured:
            return step.line
    last = max((step.line for step in program), default=1)
    way_out = "write `measure` before the step to time, as in `measure p0 munmap a`"
    raise ProgramError(where, [(last, f"no step up to here is measured: {way_out}")])
