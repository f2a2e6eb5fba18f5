# SPDX-License-Identifier: GPL-2.0-only
"""Which test functions `make check` leaves out: those that took LONGEST_S or longer in all.

usage: python tests/slow.py JUNIT.xml    write tests/slow.txt again from a report of pytest
       (make test PYTEST_ADDOPTS="-o junit_family=xunit2 --junitxml=JUNIT.xml")
"""

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

LIST = Path(__file__).resolve().with_name("slow.txt")
LONGEST_S = 0.1
"""All cases of a function together may take less than this, in seconds."""


def found(report: Path) -> list[str]:
    """The functions of a report that are slow, as pytest names them, in order."""
    took_s: Counter[str] = Counter()
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 # pytest wrote it
        name = case.attrib["name"].partition("[")[0].partition("@")[0]
        took_s[f"{case.attrib['classname'].replace('.', '/')}.py::{name}"] += float(
            case.attrib["time"]
        )
    return sorted(name for name, time_s in took_s.items() if time_s >= LONGEST_S)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    LIST.write_text("".join(f"{name}\n" for name in found(Path(sys.argv[1]))), encoding="utf-8")
