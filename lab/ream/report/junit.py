# SPDX-License-Identifier: GPL-2.0-only
"""Cases as JUnit XML, as Jenkins, GitLab and others read it.

There is no standard for it. The output uses what the schemas of Jenkins' xUnit plug-in and of
surefire have in common. It has no timestamp, so the same records produce the same bytes.
"""

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as ET

from ream.report.case import Case, plain


def render(suite: str, cases: Sequence[Case], properties: Mapping[str, object]) -> str:
    """One test suite named `suite`; properties apply to the suite as a whole."""
    counts = {
        "tests": len(cases),
        "failures": sum(case.outcome == "fail" for case in cases),
        "errors": 0,
        "skipped": sum(case.outcome == "skip" for case in cases),
    }
    texts = {name: str(count) for name, count in counts.items()}
    root = ET.Element("testsuites", texts)
    element = ET.SubElement(root, "testsuite", {"name": plain(suite), **texts})
    _properties(element, list(properties.items()))
    for case in cases:
        _case(element, suite, case)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{_text(root)}\n'


def _case(suite: ET.Element, name: str, case: Case) -> None:
    element = ET.SubElement(
        suite,
        "testcase",
        {"classname": plain(f"{name}.{case.group}"), "name": plain(case.name)},
    )
    _properties(element, case.numbers)
    if case.outcome == "pass":
        ET.SubElement(element, "system-out").text = plain(case.reason)
        return
    tag = "failure" if case.outcome == "fail" else "skipped"
    said = ET.SubElement(element, tag, {"message": plain(case.reason)})
    if tag == "failure":
        said.set("type", case.fault)
        said.text = plain(case.reason)


def _properties(element: ET.Element, pairs: Sequence[tuple[str, object]]) -> None:
    if not pairs:
        return
    properties = ET.SubElement(element, "properties")
    for name, value in pairs:
        ET.SubElement(properties, "property", {"name": name, "value": plain(value)})


def _text(root: ET.Element) -> str:
    return ET.tostring(root, encoding="unicode")
