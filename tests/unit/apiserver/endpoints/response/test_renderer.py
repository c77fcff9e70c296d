"""Encoding of objects as YAML."""

from __future__ import annotations

import yaml

from fairlead.apiserver.negotiation.media_type import YAML
from fairlead.apiserver.negotiation.serializer import text_of
from fairlead.apiserver.schema.raw_extension import RawObject


def test_a_raw_object_is_encoded_as_an_ordinary_object():
    """A RawObject has the same YAML as a dict."""
    assert text_of(YAML, {"data": RawObject({"a": 1}, b'{"a": 1}')}) == b"data:\n  a: 1\n"


def test_a_large_object_is_encoded_as_equivalent_yaml():
    """A large object is written as one line."""
    value = {"data": {"k": "é\x7f\x9f\ufeff\u2028 'x' \"y\" \\ # : - {}\n" * 20_000, "n": None}}
    text = text_of(YAML, value)
    assert text.count(b"\n") == 1
    assert yaml.load(text, Loader=yaml.CSafeLoader) == value  # noqa: TID251 - not ours on purpose


def test_shared_values_are_encoded_without_aliases():
    """A value that is referenced twice is written twice."""
    shared = {"a": 1}
    assert text_of(YAML, {"x": shared, "y": shared}) == b"x:\n  a: 1\ny:\n  a: 1\n"
