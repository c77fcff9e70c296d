"""Bodies and patches are parsed to values that can be serialized again, or refused."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.strategies import damaged, json_texts, json_values, of_type, texts
from tests.fuzz.upstream import expect_said

from fairlead.api.codec import VIEWS, DecodeError, decode, without_nulls
from fairlead.api.text.nesting import is_too_deep
from fairlead.api.text.yaml_documents import YamlError
from fairlead.apiserver.endpoints.request.body import parsed_yaml
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.negotiation.serializer import text_of
from fairlead.apiserver.patch.jsonpatch.apply import apply_json_patch
from fairlead.apiserver.patch.managedfields.field_set import (
    from_fields_v1,
    paths,
    to_fields_v1,
    union,
)
from fairlead.apiserver.patch.merge_patch import merge_patch
from fairlead.apiserver.patch.strategicpatch.merge import apply_strategic_merge
from fairlead.apiserver.protobuf.decoder import MAGIC
from fairlead.apiserver.protobuf.decoder import decode as from_protobuf
from fairlead.apiserver.protobuf.wire import bytes_field, number_field
from fairlead.apiserver.schema.decoder import decoded as in_form
from fairlead.apiserver.schema.gojson.json_text import JsonError, parse_json
from fairlead.apiserver.schema.model import schema_of
from fairlead.apiserver.schema.scalar import TypeMismatchError

KINDS = sorted(VIEWS)
TYPED = [kind for kind in KINDS if schema_of(*kind) is not None]
YAML = "application/yaml"
TOO_LARGE = 413


def is_written(value):
    """Check that a value can be written as JSON and read again."""
    msgspec.json.decode(msgspec.json.encode(value))
    return not is_too_deep(value)


@given(json_texts() | st.binary(max_size=40))
def test_json_is_parsed_or_refused(text):
    try:
        assert is_written(parse_json(text))
    except JsonError as refusal:
        expect_said(refusal)


@given(json_texts() | texts().map(str.encode) | st.binary(max_size=40))
def test_yaml_is_parsed_or_refused(text):
    try:
        assert is_written(parsed_yaml(text)[0])
    except YamlError as refusal:
        expect_said(refusal)
    except ApiError as refusal:  # aliases may repeat more values than a body may have
        if refusal.code != TOO_LARGE:
            raise


@given(json_values())
def test_written_yaml_is_parsed_to_the_same_value(value):
    """Texts with characters that YAML cannot represent are excluded."""
    try:
        read, _ = parsed_yaml(text_of(YAML, {"a": value}))
    except YamlError:
        return
    assert set(read) == {"a"}


@st.composite
def views(draw):
    """Strategy for a kind with a typed view, and a value similar to an object of it."""
    api_version, kind = draw(st.sampled_from(KINDS))
    schema = schema_of(api_version, kind)
    obj = draw(json_values() if schema is None else of_type(schema))
    named = {"apiVersion": api_version, "kind": kind}
    return {**obj, **named} if isinstance(obj, dict) else obj


@given(views())
def test_an_object_is_decoded_or_refused(obj):
    try:
        decode(without_nulls(obj))
    except DecodeError as refusal:
        expect_said(refusal)


@st.composite
def typed_objects(draw):
    """Strategy for the schema of a kind, and a value similar to an object of it."""
    schema = schema_of(*draw(st.sampled_from(TYPED)))
    return schema, draw(of_type(schema))


@given(typed_objects())
def test_the_canonical_form_is_idempotent(pair):
    """A canonical form is its own canonical form."""
    schema, obj = pair
    try:
        once, _ = in_form(schema, obj)
    except TypeMismatchError as refusal:
        expect_said(refusal)
        return
    assert in_form(schema, once) == (once, [])


OPERATIONS = st.sampled_from(("add", "remove", "replace", "move", "copy", "test", "nothing"))
POINTERS = st.lists(
    st.sampled_from(("a", "b", "0", "1", "-", "-1", "~0", "~1", "", "9" * 30)), max_size=4
).map(lambda steps: "".join(f"/{step}" for step in steps))
PLAIN = st.recursive(
    st.integers(0, 2) | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=8,
)


@given(
    PLAIN,
    st.lists(
        st.fixed_dictionaries(
            {"op": OPERATIONS, "path": POINTERS}, optional={"from": POINTERS, "value": PLAIN}
        )
        | json_values(3),
        max_size=6,
    ),
)
def test_json_patch_operations_are_applied_or_refused(obj, operations):
    before = msgspec.json.encode(obj)
    try:
        assert is_written(apply_json_patch(obj, operations))
    except ApiError as refusal:
        expect_said(refusal, 422)
    assert msgspec.json.encode(obj) == before


@given(st.dictionaries(texts(), json_values(), max_size=3), json_values())
def test_a_merge_patch_is_applied(obj, patch):
    if not isinstance(patch, dict):
        return
    once = merge_patch(obj, patch)
    assert merge_patch(once, patch) == once


SENT = "/[$a-z]*"


@st.composite
def strategic_patches(draw):
    """Strategy for a decoded object of some kind, and a patch with directives anywhere."""
    schema = schema_of(*draw(st.sampled_from(TYPED)))
    try:
        obj, _ = in_form(schema, draw(of_type(schema)))
    except TypeMismatchError:
        obj = {}
    patch = draw(of_type(schema))
    directives = st.dictionaries(
        st.sampled_from(("$patch", "$retainKeys", "$setElementOrder/finalizers", "metadata")),
        st.sampled_from(("delete", "replace", "merge", "?", [], ["a"], {}, None)),
        max_size=2,
    )
    return schema, obj, {**patch, **draw(directives)} if isinstance(patch, dict) else {}


@given(strategic_patches())
def test_a_strategic_merge_patch_is_applied_or_refused(given_three):
    schema, obj, patch = given_three
    before = msgspec.json.encode(obj)
    try:
        assert isinstance(apply_strategic_merge(schema, obj, patch), dict)
    except ApiError as refusal:
        expect_said(refusal, 400, 500)
    assert msgspec.json.encode(obj) == before


STEPS = st.sampled_from(
    (".", "f:a", "f:", 'k:{"name":"a"}', "k:{", "k:[1]", "v:1", "v:{", "i:0", "x")
)
FIELD_SETS: st.SearchStrategy = st.recursive(
    st.just({}) | json_values(2), lambda inner: st.dictionaries(STEPS, inner, max_size=3)
)


@given(FIELD_SETS, FIELD_SETS)
def test_a_field_set_is_parsed_or_refused(one, other):
    try:
        both = union(from_fields_v1(one), from_fields_v1(other))
    except ValueError:
        return
    assert union(both, from_fields_v1(to_fields_v1(both))) == both
    assert all(isinstance(path, str) for path in paths(both))


@st.composite
def messages(draw, depth=0):
    """Strategy for fields of a protobuf message; some are messages."""
    text = b""
    for _ in range(draw(st.integers(0, 4))):
        number = draw(st.integers(1, 20))
        match draw(st.integers(0, 3)):
            case 0:
                text += number_field(number, draw(st.integers(0, 2**64 - 1)))
            case 1 if depth < 6:
                text += bytes_field(number, draw(messages(depth + 1)))
            case 2:
                text += bytes_field(number, draw(texts()).encode())
            case _:
                text += draw(st.binary(max_size=4))
    return text


@st.composite
def envelopes(draw):
    """Strategy for a message with the type of its content."""
    api_version, kind = draw(st.sampled_from(TYPED))
    named = bytes_field(1, api_version.encode()) + bytes_field(2, kind.encode())
    whole = MAGIC + bytes_field(1, named) + bytes_field(2, draw(messages()))
    return draw(damaged(whole))


@given(envelopes() | st.binary(max_size=40))
def test_protobuf_is_decoded_or_refused(body):
    try:
        assert is_written(from_protobuf(body))
    except ApiError as refusal:
        expect_said(refusal, 400, 415)
