"""The conditions of --fail-on as JUnit XML, for the test reports of CI systems."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element, SubElement, tostring

from fairlead.api.text.name_list import listed
from fairlead.whatif.answer import WhatIfAnswer
from fairlead.whatif.outcome.assessment.fail_on import ConditionResult

SUITE: Final = "fairlead whatif"
# The characters that XML 1.0 does not allow.
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class JunitSuite:
    """The conditions of --fail-on for one answer; each condition is a test case.

    `name` is the answer's name if several answers are compared, otherwise "".
    """

    answer: WhatIfAnswer
    conditions: Sequence[ConditionResult]
    name: str = ""


def junit_report(suites: Sequence[JunitSuite]) -> bytes:
    """Return XML in UTF-8 with a test suite for each answer, and a test case for each condition.

    A test case fails if its condition is true, because --fail-on then makes the command fail. The
    message of the failure is the first part of the condition's evidence. The text of the failure is
    the whole evidence. An answer without conditions has one test case, which passes.
    """
    elements = [_suite(one) for one in suites]
    if len(elements) == 1:
        [root] = elements
    else:
        root = Element("testsuites", name=SUITE)
        root.extend(elements)
    content: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def _suite(one: JunitSuite) -> Element:
    answer = one.answer
    suite = Element(
        "testsuite",
        name=_text(f"{SUITE}: {one.name}" if one.name else SUITE),
        tests=str(max(len(one.conditions), 1)),
        failures=str(sum(result.holds for result in one.conditions)),
        errors="0",
        skipped="0",
    )
    title = _text(f"{one.name}: {answer.title}" if one.name else answer.title)
    for result in one.conditions:
        name = _text(f"--fail-on {result.text}")
        case = SubElement(suite, "testcase", classname=title, name=name)
        if result.holds:
            failure = SubElement(case, "failure", message=_text(listed(result.evidence)))
            failure.text = _text("\n".join(result.evidence))
    if not one.conditions:
        SubElement(suite, "testcase", classname=title, name="verdict")
    output = SubElement(suite, "system-out")
    output.text = _text("\n".join(finding.sentence for finding in answer.verdict.findings))
    return suite


def _text(text: str) -> str:
    return _NOT_XML.sub("?", text)
