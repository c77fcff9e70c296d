"""Annotations and percentages of users with too many digits."""

from __future__ import annotations

from fairlead.engine.workloads.deployment.revision import REVISION, number_in
from fairlead.engine.workloads.int_or_percent import PERCENT_MAX, scaled

DIGITS = "9" * 5_000


def test_an_annotation_with_a_too_long_number_is_ignored():
    assert number_in({REVISION: DIGITS}, REVISION) is None
    assert number_in({REVISION: "12"}, REVISION) == 12


def test_a_percentage_with_a_too_long_number_is_large():
    assert scaled(f"{DIGITS}%", 100) == PERCENT_MAX
