"""Prints the findings of an answer, in the colours of their severities, as in the HTML report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rich.console import Console
from rich.text import Text

from fairlead.whatif.input.error import one_line
from fairlead.whatif.outcome.assessment.verdict import Finding, Severity

_VERDICTS: Final = {
    Severity.BAD: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.GOOD: "bold green",
}
_OTHERS: Final = {Severity.BAD: "red", Severity.WARNING: "yellow", Severity.GOOD: ""}


def print_findings(console: Console, findings: Iterable[Finding]) -> None:
    """Print the sentence of each finding; the first one, which is the verdict, is bold.

    Sentences are wrapped between words and printed without control characters.
    """
    for number, finding in enumerate(findings):
        style = (_OTHERS if number else _VERDICTS)[finding.severity]
        console.print(Text(one_line(finding.sentence, None), style=style), soft_wrap=False)
