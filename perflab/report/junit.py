"""Verdicts as JUnit XML, which Jenkins, GitLab and others read.

There is no standard; this is the common subset: `testsuites` with `testsuite`, `testcase`, `failure`, `error`,
`skipped`, `system-out` and `properties`. What was not measured (durations of cases) is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from perflab.errors import BadInput
from perflab.report import whole_file

# Every character that XML 1.0 cannot contain, not even as a reference.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Case:
    """One verdict. `failure` and `skipped` are one line each, and at most one of them is set."""

    name: str
    group: str  # subject of the verdict; written as classname, by which CI systems sort
    failure: str | None = None
    skipped: str | None = None
    output: str = ""


@dataclass(frozen=True)
class Suite:
    name: str
    cases: Sequence[Case]
    properties: Mapping[str, str] = field(default_factory=dict)


def document(name: str, suites: Sequence[Suite]) -> str:
    """The file's text."""
    root = ElementTree.Element("testsuites", {"name": _text(name), **_counts([c for s in suites for c in s.cases])})
    for suite in suites:
        element = ElementTree.SubElement(root, "testsuite", {"name": _text(suite.name), **_counts(suite.cases)})
        if suite.properties:
            properties = ElementTree.SubElement(element, "properties")
            for key, value in suite.properties.items():
                ElementTree.SubElement(properties, "property", {"name": _text(key), "value": _text(value)})
        for case in suite.cases:
            _add(element, case)
    ElementTree.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def write(path: Path, name: str, suites: Sequence[Suite]) -> None:
    """Writes the file completely or not at all. Raises BadInput if it cannot be written."""
    try:
        whole_file.put(path, document(name, suites))
    except OSError as error:
        raise BadInput(f"--junit {path} cannot be written: {error.strerror}") from error


def _add(suite: ElementTree.Element, case: Case) -> None:
    element = ElementTree.SubElement(suite, "testcase", {"name": _text(case.name), "classname": _text(case.group)})
    for tag, words in (("failure", case.failure), ("skipped", case.skipped)):
        if words is not None:
            ElementTree.SubElement(element, tag, {"message": _text(words)}).text = _text(words)
    if case.output:
        ElementTree.SubElement(element, "system-out").text = _text(case.output)


def _counts(cases: Sequence[Case]) -> dict[str, str]:
    return {
        "tests": str(len(cases)),
        "failures": str(sum(case.failure is not None for case in cases)),
        "errors": "0",
        "skipped": str(sum(case.skipped is not None for case in cases)),
    }


def _text(words: str) -> str:
    return _NOT_XML.sub("\ufffd", words)
