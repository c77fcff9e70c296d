"""Numbers of more digits than are read, in annotations and percentages of users."""

from __future__ import annotations

from fairlead.engine.workloads.deployment.revision import REVISION, number_in
from fairlead.engine.workloads.int_or_percent import PERCENT_MAX, scaled

DIGITS = "9" * 5_000


def test_an_annotation_with_such_a_number_has_none():
    assert number_in({REVISION: DIGITS}, REVISION) is None
    assert number_in({REVISION: "12"}, REVISION) == 12


def test_such_a_percentage_is_a_large_one():
    assert scaled(f"{DIGITS}%", 100) == PERCENT_MAX
