"""Values as they are printed in refusals."""

from __future__ import annotations

import pytest

from fairlead.api.text.field_problem import shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", '"a"'),
        ('a"b\\c', r'"a\"b\\c"'),
        ("a\nb\x01", r'"a\nb\x01"'),
        ("é\u200b\U000e0001", r'"é\u200b\U000e0001"'),
        (3, "3"),
        (None, "null"),
        ({"a": "<b>"}, r'{"a":"\u003cb\u003e"}'),
    ],
)
def test_strings_are_quoted_and_other_values_are_printed_as_json(value, text):
    assert shown(value) == text
