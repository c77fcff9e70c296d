"""Which nodes the new nodes of --add-nodes are copies of."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.new_node import models_of


@pytest.mark.parametrize(
    ("like", "names"),
    [
        ("a", ["a"]),
        ("a,b", ["a", "b"]),
        ("a,a,b", ["a", "a", "b"]),
        ("a:2,b", ["a", "a", "b"]),
        ("a:1,b:3", ["a", "b", "b", "b"]),
    ],
)
def test_like_names_the_copies_of_one_turn(like, names):
    assert models_of(like) == names
