"""Label selectors as Go prints them."""

from __future__ import annotations

import pytest

from fairlead.api.text.go_selector import go_selector


@pytest.mark.parametrize(
    ("selector", "shown"),
    [
        (None, "nil"),
        (
            {},
            (
                "&LabelSelector{MatchLabels:map[string]string{},"
                "MatchExpressions:[]LabelSelectorRequirement{},}"
            ),
        ),
        (
            {
                "matchLabels": {"b": "2", "a": "1"},
                "matchExpressions": [{"key": "c", "operator": "In", "values": ["3", "4"]}],
            },
            (
                "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},"
                "MatchExpressions:[]LabelSelectorRequirement{"
                "LabelSelectorRequirement{Key:c,Operator:In,Values:[3 4],},},}"
            ),
        ),
    ],
)
def test_a_selector_is_printed_as_in_go(selector, shown):
    assert go_selector(selector) == shown
