"""The conditions of --fail-on as JUnit XML, for the test reports of CI systems."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from xml.etree.ElementTree import Element, SubElement, tostring

from fairlead.whatif.outcome.assessment.fail_on import ConditionResult
from fairlead.whatif.question import WhatIfAnswer

SUITE: Final = "fairlead whatif"
# XML 1.0 allows no other control characters.
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_report(answer: WhatIfAnswer, conditions: Sequence[ConditionResult]) -> bytes:
    """Return one test case per condition, which fails if the condition holds.

    Without conditions there is one test case, which passes; its output is the verdict.
    """
    failures = sum(one.holds for one in conditions)
    suite = Element(
        "testsuite",
        name=SUITE,
        tests=str(max(len(conditions), 1)),
        failures=str(failures),
        errors="0",
        skipped="0",
    )
    title = _text(answer.change.title)
    for one in conditions:
        case = SubElement(suite, "testcase", classname=title, name=_text(f"--fail-on {one.text}"))
        if one.holds:
            failure = SubElement(case, "failure", message=_text(answer.verdict.first.sentence))
            failure.text = _text("\n".join(one.evidence))
    if not conditions:
        SubElement(suite, "testcase", classname=title, name="verdict")
    output = SubElement(suite, "system-out")
    output.text = _text("\n".join(one.sentence for one in answer.verdict.findings))
    content: bytes = tostring(suite, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def _text(text: str) -> str:
    return _NOT_XML.sub("?", text)
