# SPDX-License-Identifier: GPL-2.0-only
"""Reads the result of a kit: a compressed archive of small files that is not trusted."""

import hashlib
import io
import re
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ream.errors import BadUsage, ReamError
from ream.kit.contents import KIT, SUMS, Kit, LaunchOfKit, PartOfKit, VisitOfKit, id_of, read_kit
from ream.record.identity import DIGITS
from ream.record.machine import Machine, Snapshot, read_machine, snapshot_of
from ream.record.regular import MOST_BYTES, regular

SCHEMA = "1"
MOST_UNPACKED = 1 << 30
_TIMES = re.compile(r"(\d+)m([\d.]+)s (\d+)m([\d.]+)s")
_NUMBERS = ("nr_cpus", "nr_usable_cpus", "timer_step_ns", "ticks_per_s", "cpus")


@dataclass(frozen=True)
class Said:
    """Output of a launch: its exit code, its lines, and its standard error."""

    code: int
    lines: tuple[str, ...]
    words: str


@dataclass(frozen=True)
class Result:
    """A result whose files match their checksums."""

    path: Path
    files: Mapping[str, bytes]
    kit: Kit
    kit_id: str
    facts: Mapping[str, str]
    digest: str

    @property
    def cpus(self) -> str:
        """The number of CPUs whose plans were run."""
        return self.facts["cpus"]

    def text(self, name: str) -> str | None:
        """The text of a file; None if there is none."""
        found = self.files.get(name)
        return None if found is None else found.decode(errors="replace")

    def machine(self, work: Path) -> Machine:
        """The machine that measured, read from the files that it sent. work: an empty directory."""
        for name, content in self.files.items():
            if name.startswith("root/"):
                path = work / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        machine_id = self.facts["machine"]
        return read_machine(work / "root").model_copy(
            update={
                **{name: int(self.facts[name]) for name in _NUMBERS[:3]},
                "id": machine_id if len(machine_id) == DIGITS else None,
            }
        )

    def moments(self) -> tuple[Snapshot, Snapshot]:
        """Return snapshots of the load before the first launch and after the last."""
        return self._moment("before"), self._moment("after")

    def _moment(self, name: str) -> Snapshot:
        spent = sum(
            60 * int(minutes) + float(seconds)
            for found in _TIMES.findall(self.text(f"{name}.times") or "")
            for minutes, seconds in (found[:2], found[2:])
        )
        return snapshot_of(
            self.text(f"{name}.loadavg"),
            self.text(f"{name}.stat"),
            own_ticks=round(spent * int(self.facts["ticks_per_s"])),
        )

    def said(self, part: PartOfKit, launch: LaunchOfKit) -> Said | None:
        """Return the output of a launch; None if it was not started.

        Raises ReamError if the program that ran was not the kit's.
        """
        return self._said(f"{part.name}.{launch.number}", launch.sha256)

    def said_of_visit(self, visit: VisitOfKit) -> Said | None:
        """Return the output of a visit; None and errors are as for `said()`."""
        return self._said(visit.name, visit.sha256)

    def _said(self, files: str, sha256: str) -> Said | None:
        name = f"said/{files}"
        code = self.text(f"{name}.code")
        if code is None:
            return None
        ran = (self.text(f"{name}.sha256") or "").strip()
        if ran != sha256:
            raise ReamError(
                f"{self.path}: {files}: the program that ran is {ran[:12] or 'unknown'}, and that"
                f" of the kit {sha256[:12]}"
            )
        lines = (self.text(f"{name}.jsonl") or "").splitlines(keepends=True)
        # A last line without its newline was cut short, and is dropped.
        whole = tuple(line.rstrip("\n") for line in lines if line.endswith("\n"))
        return Said(int(code), whole, self.text(f"{name}.err") or "")


def read_result(path: Path) -> Result:
    """Read a result; raises BadUsage if the file is no result, or damaged."""
    try:
        with regular(path, MOST_BYTES) as file:
            packed = file.read()
    except OSError as cause:
        raise BadUsage(f"{path}: {cause.strerror}") from cause
    files = _unpacked(packed, path)
    _check(files, path)
    facts = dict(line.partition("=")[::2] for line in files["run"].decode().splitlines())
    if facts.get("schema") != SCHEMA:
        raise BadUsage(f"{path}: a result of schema {facts.get('schema')}; this reads {SCHEMA}")
    for name in _NUMBERS:
        if not re.fullmatch(r"[0-9]{1,12}", facts.get(name, "")):
            raise BadUsage(f"{path}: damaged: it does not say {name}")
    kit = read_kit(files[KIT], where=str(path))
    kit_id = id_of(files[KIT])
    if facts.get("kit") != f"ream-kit-{kit_id}" or "machine" not in facts:
        raise BadUsage(f"{path}: its launches are of {facts.get('kit')}, its {KIT} of {kit_id}")
    if not re.fullmatch(r"\d{8}T\d{6}Z", facts.get("began", "")):
        raise BadUsage(f"{path}: damaged: it does not say when it began")
    return Result(path, files, kit, kit_id, facts, hashlib.sha256(packed).hexdigest())


def _unpacked(packed: bytes, path: Path) -> dict[str, bytes]:
    """Return the regular files' contents by name; nothing is written to disk."""
    what = f"{path}: not a result of a kit, or damaged"
    found: dict[str, bytes] = {}
    try:
        left = MOST_UNPACKED
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
            for entry in archive:
                if not entry.isfile():
                    continue
                left -= entry.size
                place = PurePosixPath(entry.name)
                if left < 0 or place.is_absolute() or ".." in place.parts:
                    raise BadUsage(f"{what}: {entry.name} is no file of one")
                content = archive.extractfile(entry)
                assert content is not None
                found["/".join(place.parts[1:])] = content.read()
    except (tarfile.TarError, EOFError, OSError, zlib.error, ValueError) as cause:
        raise BadUsage(f"{what}: {cause}") from cause
    return found


def _check(files: Mapping[str, bytes], path: Path) -> None:
    """Raise BadUsage unless all files match the checksums in the result."""
    if missing := {KIT, SUMS, "run"} - files.keys():
        raise BadUsage(f"{path}: not a result of a kit: it has no {', '.join(sorted(missing))}")
    sums = {}
    for line in files[SUMS].decode(errors="replace").splitlines():
        digest, _, name = line.partition("  ")
        sums[name.removeprefix("./")] = digest
    for name, content in files.items():
        if name != SUMS and sums.pop(name, None) != hashlib.sha256(content).hexdigest():
            raise BadUsage(f"{path}: damaged: {name} is not as it was written")
    if sums:
        raise BadUsage(f"{path}: damaged: {next(iter(sums))} is missing")
