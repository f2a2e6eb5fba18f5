# SPDX-License-Identifier: GPL-2.0-only
"""Reads patches: their hunks, and the part that git apply reads."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_DIFF = re.compile(rb"(?m)^(?:diff --git a/|--- \S[^\n]*\n\+\+\+ \S)")

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")

_GIT_LINE = re.compile(r"diff --git (\S+) (\S+)$")

_TOP = re.compile(
    r"Documentation|LICENSES|arch|block|certs|crypto|drivers|fs|include|init|io_uring|ipc|kernel"
    r"|lib|mm|net|rust|samples|scripts|security|sound|tools|usr|virt"
    r"|COPYING|CREDITS|Kbuild|Kconfig|MAINTAINERS|Makefile|README"
)
"""Names at the top level of a kernel source."""

_KEPT = (".orig", ".old", ".bak", "~")
"""Suffixes of original files that were saved for a comparison."""

_EXTENDED = ("old mode", "new mode", "deleted file", "new file", "copy", "rename")
"""Lines of git's extended header that have an effect, unlike `index` and `similarity`."""


@dataclass(frozen=True)
class Hunk:
    """The place of one hunk of a patch."""

    file: str
    """The changed file, without the first part of its path; for a new file its new name."""
    number: int
    """The hunk's number in its file, from 1."""
    old_start: int
    """The line in the original file, from 1; 0 for a new file."""
    header: str
    """The header line, from the first @@."""


def rooted(body: bytes) -> bytes:
    """Return the patch with the prefixes a/ and b/ that git writes before paths.

    `git diff --no-prefix` and `diff -u x.c.orig x.c` write no prefix, other tools write names of
    folders. Paths without a top level name of a kernel are not changed.
    """
    lines, made = _lines(body), list[str]()
    for line in lines:
        if line.startswith("+++ ") and made and made[-1].startswith("--- "):
            old, old_time = _name_and_time(made[-1])
            new, new_time = _name_and_time(line)
            old, new = _below_top(old, new)
            made[-1:] = [f"--- {old}{old_time}", f"+++ {new}{new_time}"]
        elif match := _GIT_LINE.match(line):
            made.append("diff --git {} {}".format(*_below_top(match[1], match[2])))
        else:
            made.append(line)
            if match := _HUNK.match(line):
                made += _hunk_lines(lines, match)
    return "\n".join(made).encode(errors="surrogateescape")


def starts_at_top(file: str) -> bool:
    """Whether a path begins with a top level name of a kernel source."""
    return _TOP.fullmatch(file.partition("/")[0]) is not None


def _name_and_time(line: str) -> tuple[str, str]:
    """Return the name in a "--- " or "+++ " line, and the text after it."""
    name, tab, time = line[4:].partition("\t")
    return name, tab + time


def _below_top(old: str, new: str) -> tuple[str, str]:
    """Return the old and the new name of a file with a/ and b/ before its path in the kernel."""
    parts = [name.split("/") for name in (old, new) if name != "/dev/null"]
    depths = range(min(map(len, parts), default=0))
    depth = next((at for at in depths if all(_TOP.fullmatch(one[at]) for one in parts)), None)
    if old.startswith(("a/", "/dev/null")) and new.startswith(("b/", "/dev/null")):
        depth = 1
    if depth is None:
        return old, new
    if old.endswith(_KEPT) and new != "/dev/null":
        old, parts = new, parts[1:] * 2
    sides = [(old, "a", parts[0]), (new, "b", parts[-1])]
    first, second = (
        name if name == "/dev/null" else "/".join([side, *inside[depth:]])
        for name, side, inside in sides
    )
    return first, second


def holds_diff(body: bytes) -> bool:
    """Whether a text contains a diff that is not quoted."""
    return _DIFF.search(body) is not None


def hunks(body: bytes) -> tuple[Hunk, ...]:
    """Return the hunks of a patch in order.

    The lengths in @@ lines are used, because a removed line may itself read "--- a/file".
    """
    found: list[Hunk] = []
    old = new = ""
    numbers: dict[str, int] = {}
    lines = _lines(body)
    for line in lines:
        if line.startswith("--- "):
            old = _path(line)
        elif line.startswith("+++ "):
            new = _path(line)
        elif match := _HUNK.match(line):
            file = new if old == "/dev/null" else old
            numbers[file] = numbers.get(file, 0) + 1
            header = line.rstrip().encode(errors="surrogateescape").decode(errors="replace")
            found.append(Hunk(file, numbers[file], int(match[1]), header))
            for _ in _hunk_lines(lines, match):
                pass
    return tuple(found)


def is_difference(body: bytes, name: str) -> bool:
    """Whether a text is a unified diff of the file of that name."""
    return f"\n--- a/{name}\n".encode() in b"\n" + body


def message_of(body: bytes) -> bytes:
    """Return the text before the diff in a patch."""
    return body[: found.start()] if (found := _DIFF.search(body)) else body


def changed(body: bytes, difference: bytes) -> bytes:
    """Apply a unified diff to a text.

    A hunk is applied at its line or, if it does not match there, at the only other place where it
    matches. Raises ValueError with the header of the first hunk that does not match.
    """
    old, made, at = [*_lines(body)], list[str](), 0
    lines = _lines(difference)
    for line in lines:
        if (match := _HUNK.match(line)) is None:
            continue
        inside = [(one[:1] or " ", one[1:]) for one in _hunk_lines(lines, match)]
        before, after = ([one for kind, one in inside if kind in (" ", sign)] for sign in "-+")
        fits = [n for n in range(at, len(old) + 1) if old[n : n + len(before)] == before]
        # A hunk that only adds lines gives the line before them.
        if (place := int(match[1]) - bool(before)) not in fits:
            if len(fits) != 1:
                raise ValueError(match[0])
            (place,) = fits
        made += [*old[at:place], *after]
        at = place + len(before)
    return "\n".join([*made, *old[at:]]).encode(errors="surrogateescape")


def changed_files(body: bytes) -> frozenset[str]:
    """Return files that a patch changes, adds, removes or renames, without paths' first part."""
    text = body.decode("utf-8", errors="replace")
    git = re.findall(r"(?m)^diff --git a/(.+) b/(.+)$", text)
    return frozenset(name for pair in git for name in pair) | {hunk.file for hunk in hunks(body)}


def essence(body: bytes) -> bytes:
    """Return only the diff, which is equal for patches that change the same lines in the same way.

    It has no mail text, blob names, file times, function names after hunks' line numbers, or git
    signature. If the body has no diff, it is returned whole.
    """
    kept = [line.encode(errors="surrogateescape") for line in _diff_lines(body)]
    return b"\n".join(kept) if kept else body


def _diff_lines(body: bytes) -> Iterator[str]:
    before = ""
    in_header = in_binary = has_hunk = False
    lines = _lines(body)
    for line in lines:
        if line.startswith("diff --git "):
            in_header, in_binary = True, False
            yield line
        elif in_binary:
            in_binary = line != "-- "
            yield from [line] if in_binary and line else []
        elif before.startswith("--- ") and line.startswith("+++ "):
            # Both begin with the same text, so that the order of names is kept.
            yield f"--- {_path(before)}"
            yield f"+++ {_path(line)}"
        elif match := _HUNK.match(line):
            in_header, has_hunk = False, True
            yield match[0]
            yield from (inside or " " for inside in _hunk_lines(lines, match))
        elif (has_hunk and line.startswith("\\ ")) or (in_header and line.startswith(_EXTENDED)):
            yield line
        elif in_header and line.startswith(("GIT binary patch", "Binary files ")):
            in_binary = True
            yield line
        before = line


def _lines(body: bytes) -> Iterator[str]:
    return iter(body.decode("utf-8", errors="surrogateescape").split("\n"))


def _path(line: str) -> str:
    """Return the path in a "--- a/mm/mm_init.c" line without its first part; keep /dev/null."""
    name = line[4:].partition("\t")[0].strip().strip('"')
    return name if name == "/dev/null" else name.partition("/")[2]


def _hunk_lines(lines: Iterator[str], header: re.Match[str]) -> Iterator[str]:
    """Consume the lines of a hunk by its header's counts; some programs strip blank lines."""
    nr_old, nr_new = int(header[2] or 1), int(header[3] or 1)
    while nr_old > 0 or nr_new > 0:
        line = next(lines, None)
        if line is None:
            return
        kind = line[:1]
        nr_old -= kind not in ("+", "\\")
        nr_new -= kind not in ("-", "\\")
        yield line
