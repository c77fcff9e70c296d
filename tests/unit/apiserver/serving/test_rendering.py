"""What maps look like that know how they were written."""

from __future__ import annotations

from fairlead.apiserver.schema.spelled import Spelled
from fairlead.apiserver.serving.negotiation import YAML
from fairlead.apiserver.serving.rendering import text_of


def test_an_object_as_it_was_spelled_is_an_object_in_yaml_too():
    """Like any other."""
    assert text_of(YAML, {"data": Spelled({"a": 1}, b'{"a": 1}')}) == b"data:\n  a: 1\n"
