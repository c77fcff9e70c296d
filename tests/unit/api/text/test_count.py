"""Words for numbers of things."""

from __future__ import annotations

import pytest

from fairlead.api.text.count import counted, counted_of


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 pods"), (1, "1 pod"), (2000, "2,000 pods")], ids=str
)
def test_a_noun_agrees_with_its_number(count, words):
    assert counted(count, "pod") == words
    assert counted(count, "capacity", "capacities").startswith(f"{count:,} capacit")


@pytest.mark.parametrize(
    ("count", "total", "words"),
    [
        (0, 1, "0 of 1 node is"),
        (1, 1, "1 of 1 node is"),
        (1, 9, "1 of 9 nodes is"),
        (0, 9, "0 of 9 nodes are"),
        (2, 9, "2 of 9 nodes are"),
    ],
    ids=str,
)
def test_a_verb_agrees_with_both_numbers(count, total, words):
    assert counted_of(count, total, "node") == words
    verb = "agrees" if words.endswith("is") else "agree"
    assert counted_of(count, total, "node", ("agrees", "agree")).endswith(f" {verb}")
