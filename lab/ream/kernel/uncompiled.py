# SPDX-License-Identifier: GPL-2.0-only
"""Names the patch with which a kernel does not compile, in one line with the compiler's error."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ream.errors import BadUsage, ReamError
from ream.kernel.series import Patch, files
from ream.kernel.variant import HOME

_ERROR = re.compile(
    r"(?:^|: exit \d+: )(?P<file>[^\s:]+):(?P<line>\d+)(?P<column>:\d+)?: "
    r"(?:fatal )?error: (?P<what>.*)$",
    re.MULTILINE,
)
"""A compiler's error, at the start of a line or after the command that failed in `run`."""

_OUT = "../"
"""Path of the source tree from kbuild's build directory."""


class DoesNotCompile(BadUsage):
    """A patch applies to the kernel source, but the result does not compile."""


@contextmanager
def naming_the_patch(patches: Sequence[Patch], tree: Path) -> Iterator[None]:
    """Turn a compiler's error in a patched file of the kernel into DoesNotCompile.

    patches: those on the kernel that is compiled; without them it must compile. tree: its source.
    Errors in ream's own files, and errors that are not a compiler's, are not changed.
    """
    try:
        yield
    except ReamError as cause:
        found = _ERROR.search(str(cause)) if patches else None
        file = "" if found is None else found["file"].removeprefix(_OUT)
        if found is None or file.startswith(f"{HOME}/"):
            raise
        where = f"{file}:{found['line']}{found['column'] or ''}"
        which = _which(patches, tree, file, int(found["line"]))
        raise DoesNotCompile(f"{which} not compile: {where}: error: {found['what']}") from cause


def _which(patches: Sequence[Patch], tree: Path, file: str, line: int) -> str:
    """Return the patch that added a line, with a verb; all patches if it is not known."""
    text = _line(tree / file, line)
    bringing = [
        one for one in patches if file in files(one) and text and b"\n+" + text + b"\n" in one.body
    ]
    if len(patches) == 1 or bringing:
        return f"{(bringing or patches)[-1].name} does"
    return f"{patches[0].name} to {patches[-1].name} do"


def _line(path: Path, number: int) -> bytes:
    """Return a line of a file without its newline; empty if there is no such line."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return b""
    return lines[number - 1] if 0 < number <= len(lines) else b""
