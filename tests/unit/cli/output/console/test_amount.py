"""Amounts that are formatted for readers."""

from __future__ import annotations

import pytest

from fairlead.cli.output.console.amount import amount_text, percent_text


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 500, "0.5"),
        ("cpu", 12345, "12.3"),
        ("cpu", 12350, "12.4"),
        ("cpu", 99_960, "100"),
        ("cpu", 125_514_000, "125,514"),
        ("memory", 512, "512"),
        ("memory", 8 * 2**30, "8.0Gi"),
        ("memory", 584 * 2**40, "584Ti"),
        ("hugepages-2Mi", 2**21, "2.0Mi"),
        ("ephemeral-storage", 0, "0"),
        ("nvidia.com/gpu", 1200, "1,200"),
        ("pods", 110, "110"),
    ],
)
def test_amounts_have_the_unit_of_their_resource(resource, amount, text):
    assert amount_text(resource, amount) == text


def test_shares_are_percentages_of_the_allocatable_amount():
    assert percent_text(1, 3) == "33.3%"
    assert percent_text(1, 0) == ""


@pytest.mark.parametrize(("part", "whole", "text"), [(11, 880, "1.2%"), (7, 2000, "0.4%")])
def test_a_share_between_two_tenths_of_a_percent_is_rounded_to_the_even_one(part, whole, text):
    assert percent_text(part, whole) == text
