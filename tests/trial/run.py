# SPDX-License-Identifier: GPL-2.0-only
"""Judges each patch of a folder once, and appends what came of it to a record, a line each.

A patch that the record has is left out, so that a run can go on. Nothing is judged twice.

.venv/bin/python tests/trial/run.py KIND FOLDER RECORD [options of ream judge, such as --quick]
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
MOST_S = 1800.0


def judged(patch: Path, options: list[str]) -> dict[str, Any]:
    """What `ream judge` says of a patch, and how long it took."""
    words = [sys.executable, "-m", "ream", "judge", str(patch), "--json", "--quiet", *options]
    began_s = time.monotonic()
    where = {**os.environ, "PYTHONPATH": str(CHECKOUT / "lab")}
    ran = subprocess.run(
        words, check=False, capture_output=True, text=True, timeout=MOST_S, env=where
    )
    its: dict[str, Any] = {"exit": ran.returncode, "wall_s": round(time.monotonic() - began_s, 1)}
    if not ran.stdout.startswith("{"):
        return {**its, "said": ran.stderr.strip().splitlines()[-1:]}
    said = json.loads(ran.stdout)
    whole, wrong = said["whole"] or {}, said["wrong"]
    names = ("nr_blocks", "nr_entered", "missed", "nr_programs", "nr_steps", "differs", "same")
    its |= {name: whole.get(name) for name in names}
    its |= {"functions": whole.get("functions"), "rows": len(said["operations"])}
    its |= {"timed": sum(one["timed"] is not None for one in said["operations"])}
    its |= {"subjects": said["subjects"]}
    if not wrong:
        return its
    program = (wrong["shown"] or {}).get("program")
    nr_steps = len(program.splitlines()) if program else None
    its |= {"experiment": wrong["experiment"], "said": wrong["lines"][:1]}
    its |= {"first_patch": wrong["first_patch"]}
    return {**its, "nr_program_steps": nr_steps, "program": program}


def main() -> None:
    """Go on where the record ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind")
    parser.add_argument("folder", type=Path)
    parser.add_argument("record", type=Path)
    asked, options = parser.parse_known_args()
    old = asked.record.read_text().splitlines() if asked.record.exists() else []
    known = {json.loads(line)["sha256"] for line in old}
    for patch in sorted(asked.folder.glob("*.patch")):
        sha256 = hashlib.sha256(patch.read_bytes()).hexdigest()
        if sha256 not in known:
            its = {"name": patch.stem, "kind": asked.kind, "sha256": sha256}
            line = json.dumps(its | judged(patch, options))
            with asked.record.open("a") as record:
                record.write(f"{line}\n")


if __name__ == "__main__":
    main()
