# SPDX-License-Identifier: GPL-2.0-only
"""Short names of types of CPU, such as Zen 3, for headings of tables."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

_TYPE = re.compile(r"(?P<name>.*) \(family (?P<family>\d+) model (?P<model>\d+)\)")
_ZEN = (
    (23, range(0x30), "Zen 1"),
    (23, range(0x30, 0x100), "Zen 2"),
    (25, range(0x10), "Zen 3"),
    (25, range(0x10, 0x20), "Zen 4"),
    (25, range(0x20, 0x60), "Zen 3"),
    (25, range(0x60, 0x100), "Zen 4"),
    (26, range(0x100), "Zen 5"),
)
"""Family, models and name of AMD's cores, after arch/x86/kernel/cpu/amd.c."""
_NOISE = re.compile(r"\((?:R|TM)\)|\b(?:Processor|CPU)\b.*")


def short_names(types: Iterable[str]) -> Mapping[str, str]:
    """A short name for each type of CPU, as `cpu_type()` writes it, and no two the same.

    What shares its name with another has its model behind it.
    """
    known = dict.fromkeys(types)
    short = {one: _short(one) for one in known}
    shared = Counter(short.values())
    return {
        one: f"{name} model {found['model']}"
        if shared[name] > 1 and (found := _TYPE.fullmatch(one))
        else name
        for one, name in short.items()
    }


def _short(cpu: str) -> str:
    found = _TYPE.fullmatch(cpu)
    if found is None:
        return cpu
    name, family, model = found["name"], int(found["family"]), int(found["model"])
    if name.startswith("AMD"):
        for of_family, models, core in _ZEN:
            if family == of_family and model in models:
                return core
    return _NOISE.sub("", name).strip() or cpu
