"""Incremental decoding of a changed object agrees with decoding the whole object."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.apiserver.schema.test_compiled_reader import KINDS, values

from fairlead.apiserver.schema.decoder import decoded
from fairlead.apiserver.schema.incremental_decoder import changed
from fairlead.apiserver.schema.model import Type
from fairlead.apiserver.schema.scalar import TypeMismatchError


def outcome(act):
    """Return the result of `act` as JSON, or "refused"."""
    try:
        return json.dumps(act(), sort_keys=True)
    except TypeMismatchError:
        return "refused"


@st.composite
def changes(draw, schema, old, depth=0):
    """Changed versions of `old`: with fields removed, added or replaced."""
    if schema.type is not Type.OBJECT or depth > 3 or draw(st.integers(0, 9)) == 0:
        return draw(values(schema))
    new = {key: item for key, item in old.items() if draw(st.integers(0, 5))}
    for name in draw(st.lists(st.sampled_from(sorted(schema.fields)), max_size=3)):
        inner, before = schema.fields[name].schema, new.get(name)
        is_object = isinstance(before, dict)
        new[name] = draw(changes(inner, before, depth + 1) if is_object else values(inner))
    return new


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=40)
def test_incremental_decoding_agrees_with_complete_decoding(kind, data):
    """Both return the same value or both refuse, for any old object."""
    schema = KINDS[kind]
    try:
        old, _ = decoded(schema, data.draw(values(schema)))
    except TypeMismatchError:
        return
    new = data.draw(changes(schema, old))
    assert outcome(lambda: changed(schema, old, new)) == outcome(lambda: decoded(schema, new)[0])


def test_unchanged_parts_are_shared_with_the_old_object():
    """They are not decoded again."""
    spec = {"containers": [{"name": "c"}]}
    old, _ = decoded(KINDS["Pod"], {"spec": spec, "status": {"phase": "Pending"}})
    new = changed(KINDS["Pod"], old, {**old, "status": {**old["status"], "phase": "Running"}})
    assert new["spec"] is old["spec"]
    assert new["status"]["phase"] == "Running"
