"""Requests recorded with kube-apiserver 1.36 are sent to our own server, and answers compared.

`api_differences.txt` names the cases that differ so far: none may be added, and fixed cases are
removed. tests/kubectl compares the output of kubectl.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.conformance.api.server_choice import cases
from fairlead.conformance.run import compare_file

RECORDED = Path(__file__).parent / "data" / "api"
KNOWN = frozenset((Path(__file__).parent / "api_differences.txt").read_text().split())
THEMES = {
    "01-discovery": 212,
    "02-tables": 99,
    "03-crud": 179,
    "04-patch": 158,
    "05-errors": 394,
    "07-clients": 21,
}
LONG = ("02-tables", "04-patch", "05-errors")


def differing(theme: str) -> tuple[int, dict[str, str]]:
    """Return (number of cases, differences by case)."""
    with cases("", None, None, "*") as judged_by:
        result = compare_file(judged_by, RECORDED / f"{theme}.jsonl.gz")
    return result.cases, {name: str(found) for name, found in result.differences}


@pytest.mark.parametrize(
    "theme",
    [pytest.param(theme, marks=[pytest.mark.long] if theme in LONG else []) for theme in THEMES],
)
def test_only_known_cases_differ(theme: str) -> None:
    """All other cases agree in status, headers, bodies and watch events."""
    count, found = differing(theme)
    assert {name: difference for name, difference in found.items() if name not in KNOWN} == {}
    assert count == THEMES[theme]
