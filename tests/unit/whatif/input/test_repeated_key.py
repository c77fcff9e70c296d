"""Keys that a JSON file gives twice are named with their object and field."""

from __future__ import annotations

import pytest

from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.repeated_key import CHARACTERS_MAX, require_distinct_keys

POD = '{"kind": "Pod", "metadata": {"name": "p"}, "spec": %s}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "f.json: the key 'a' is given twice"),
        (POD % '{"x": [{"b": 1, "a": 2, "b": 3}]}', "f.json: Pod p: spec.x[0]: the key 'b' is"),
        ('{"items": [%s, {"a": 1, "a": 2}]}' % (POD % '{"c": 1, "c": 1}'), "Pod p: spec: the key"),
        (POD % '{"x": {"a": 1, "a": 2}, "x": 3}', "f.json: Pod p: spec: the key 'x' is"),
    ],
)
def test_the_first_repeated_key_is_named(text, message) -> None:
    with pytest.raises(InputError) as refused:
        require_distinct_keys("f.json", text)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "text", ["{}", POD % "{}", '[{"a": 1}, {"a": 1}]', "[" * 5000 + "]" * 5000]
)
def test_other_texts_are_accepted(text) -> None:
    require_distinct_keys("f.json", text)


def test_large_texts_are_not_searched() -> None:
    require_distinct_keys("f.json", '{"a": 1, "a": 2}' + " " * CHARACTERS_MAX)
