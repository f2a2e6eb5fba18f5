# SPDX-License-Identifier: GPL-2.0-only
"""Layouts with one number per line: bindings of a driver, and the messages of a boot."""

import re
from collections.abc import Mapping, Sequence

from ream.errors import BadUsage
from ream.mail.layout import Parsed
from ream.mail.text import NUMBER, MailLine, number
from ream.published import TableRow
from ream.values import Scalar

BINDINGS = "Base(v7.1-rc6): / First binding: 1466 ms / Average of subsequent rebinds: 262.12 ms"
BOOT_LOG = "Without this patch series: / [ 0.48] node 0 initialised, 23398907 pages in 292ms"

_BASE = re.compile(r"Base ?\((v[^()\s]+)\) ?:")
_SERIES = re.compile(r"(?:With this|Full) series ?:")
_BINDING = re.compile(
    rf"(?:(First) binding(?: for (\w+) driver)?|Average of subsequent rebinds) ?: ({NUMBER}) ms"
)
_DEVICE = re.compile(r"(nd_pmem|dax_pmem) rebind, .* (fsdax|devdax) namespace, (\w+=\w+)")
_BY_DRIVER = {"nd_pmem": "fsdax, map=dev", "dax_pmem": "devdax, align=2097152"}
"""The device of each driver, for texts that name the driver alone."""

_WITHOUT = re.compile(r"Without this patch series ?:", re.IGNORECASE)
_WITH = re.compile(r"With this patch series ?:", re.IGNORECASE)
_NODE = re.compile(
    r"\[ ?[0-9]+\.[0-9]+ ?\] node ([0-9]{1,4}) initialised, ([0-9]{1,15}) pages in ([0-9]{1,9})ms"
)
_MESSAGE = re.compile(r"\[ ?[0-9]+\.[0-9]+ ?\] (?!node ).+")

_VARIANTS = ("before", "published")
_Key = tuple[tuple[str, Scalar], ...]


class _Pairs:
    """Numbers of the kernel before and after, by their parameters, in the order met."""

    def __init__(self) -> None:
        self._values: dict[_Key, dict[str, int | float]] = {}

    def add(self, params: Mapping[str, Scalar], variant: str, value: str, line: MailLine) -> None:
        """Add a number; raises BadUsage if one with these parameters exists."""
        told = self._values.setdefault(tuple(params.items()), {})
        if variant in told:
            raise BadUsage(f"line {line.number}: a second number of the same: {line.text}")
        told[variant] = number(value)

    def rows(self) -> tuple[TableRow, ...]:
        return tuple(
            TableRow(
                params=dict(key), values={name: told[name] for name in _VARIANTS if name in told}
            )
            for key, told in self._values.items()
        )

    def lacks(self) -> str | None:
        """The first number without a counterpart, in words; None if there is none."""
        for key, told in self._values.items():
            for variant in _VARIANTS:
                if variant not in told:
                    said = ", ".join(f"{name} = {value}" for name, value in key)
                    return f"no number of the kernel {variant} for {said}"
        return None


def binding_starts(lines: Sequence[MailLine]) -> Sequence[int]:
    """Where tables begin: where a device, or a base without a device, occurs again."""
    starts: list[int] = []
    devices, after = set[str](), False
    for place, line in enumerate(lines):
        if (found := _DEVICE.fullmatch(line.text)) is not None:
            device = f"{found[2]}, {found[3]}"
            if not starts or device in devices:
                starts.append(place)
                devices.clear()
            devices.add(device)
            after = False
        elif _BASE.fullmatch(line.text):
            if not starts or (after and not devices):
                starts.append(place)
            after = False
        elif _SERIES.fullmatch(line.text):
            after = True
        elif not starts and _BINDING.fullmatch(line.text):
            starts.append(place)
    return starts


def read_bindings(lines: Sequence[MailLine], start: int, end: int) -> Parsed | None:
    """First binding and rebinds, with the base and with the series, for each of two devices."""
    pairs, understood = _Pairs(), set[int]()
    variant = config = base = None
    guessed = False
    for line in lines[start:end]:
        if (found := _BASE.fullmatch(line.text)) is not None:
            if base not in (None, found[1]):
                raise BadUsage(f"line {line.number}: another base than {base}: {line.text}")
            variant, base = "before", found[1]
        elif _SERIES.fullmatch(line.text):
            variant = "published"
        elif (found := _DEVICE.fullmatch(line.text)) is not None:
            config, variant = f"{found[2]}, {found[3]}", None
        elif (found := _BINDING.fullmatch(line.text)) is not None:
            if found[2] is not None:
                config, guessed = _BY_DRIVER.get(found[2]), True
            if variant is None or config is None:
                raise BadUsage(f"line {line.number}: of which kernel, which device? {line.text}")
            when = "first" if found[1] else "rebind"
            pairs.add({"config": config, "when": when}, variant, found[3], line)
        else:
            continue
        understood.add(line.number)
    if base is None or not pairs.rows():
        return None
    said = "not in the table: the device that the series' other versions have with this driver"
    return Parsed(
        unit="ms",
        better="lower",
        method="driver unbound and rebound; first bind apart, then the average of the rebinds",
        rows=pairs.rows(),
        facts={"base": base},
        notes={"rows": said} if guessed else {},
        lines=frozenset(understood),
        lacks=pairs.lacks(),
    )


def _variant(line: MailLine) -> str | None:
    if _WITHOUT.fullmatch(line.text):
        return "before"
    return "published" if _WITH.fullmatch(line.text) else None


def boot_starts(lines: Sequence[MailLine]) -> Sequence[int]:
    """Where boot logs begin: where the same kernel occurs again."""
    starts: list[int] = []
    seen = set[str]()
    for place, line in enumerate(lines):
        variant = _variant(line)
        if variant is not None:
            if not starts or variant in seen:
                starts.append(place)
                seen.clear()
            seen.add(variant)
        elif not starts and _NODE.fullmatch(line.text):
            starts.append(place)
    return starts


def read_boot_log(lines: Sequence[MailLine], start: int, end: int) -> Parsed | None:
    """The kernel's message on each node, without the series and with it."""
    pairs, understood, variant = _Pairs(), set[int](), None
    for line in lines[start:end]:
        if (found := _NODE.fullmatch(line.text)) is not None:
            if variant is None:
                raise BadUsage(f"line {line.number}: with the series, or without? {line.text}")
            node = {"node": int(found[1]), "nr_pages": int(found[2])}
            pairs.add(node, variant, found[3], line)
        elif (told := _variant(line)) is not None:
            variant = told
        else:
            continue
        understood.add(line.number)
    if not pairs.rows():
        return None
    last = max(understood)
    return Parsed(
        unit="ms",
        better="lower",
        method="boot log without and with the series",
        rows=pairs.rows(),
        lines=frozenset(understood),
        lacks=pairs.lacks(),
        skipped={
            line.number: "a boot message of no node; it is in no table"
            for line in lines[start:end]
            if line.number < last and _MESSAGE.fullmatch(line.text)
        },
    )
