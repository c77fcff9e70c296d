"""JSON patch: the result of each operation, and operations that are refused."""

from __future__ import annotations

import copy

import msgspec
import pytest

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.patch.jsonpatch.apply import (
    OPERATIONS_MAX,
    PatchFailedError,
    apply_json_patch,
)
from fairlead.apiserver.patch.jsonpatch.document import parts_equal

OBJ = {"a": {"b": 1}, "l": [1, 2, 3]}


def op(op, path, **more):
    return {"op": op, "path": path, **more}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (op("add", "/a/c", value=2), {"a": {"b": 1, "c": 2}, "l": [1, 2, 3]}),
        (op("add", "/a/c"), {"a": {"b": 1, "c": None}, "l": [1, 2, 3]}),
        (op("add", "/l/-", value=4), {"a": {"b": 1}, "l": [1, 2, 3, 4]}),
        (op("add", "/l/0", value=0), {"a": {"b": 1}, "l": [0, 1, 2, 3]}),
        (op("add", "/l/-1", value=4), {"a": {"b": 1}, "l": [1, 2, 3, 4]}),
        (op("replace", "/a/b", value=5), {"a": {"b": 5}, "l": [1, 2, 3]}),
        (op("replace", "/a/z", value=5), {"a": {"b": 1, "z": 5}, "l": [1, 2, 3]}),
        (op("replace", "/l/1", value=5), {"a": {"b": 1}, "l": [1, 5, 3]}),
        (op("remove", "/a/b"), {"a": {}, "l": [1, 2, 3]}),
        (op("remove", "/l/0"), {"a": {"b": 1}, "l": [2, 3]}),
        (op("move", "/c", **{"from": "/a/b"}), {"a": {}, "l": [1, 2, 3], "c": 1}),
        (op("copy", "/c", **{"from": "/a"}), {"a": {"b": 1}, "l": [1, 2, 3], "c": {"b": 1}}),
        (op("test", "/a/b", value=1), OBJ),
        (op("test", "/a/z", value=None), OBJ),
        (op("replace", "", value={}), {}),
    ],
)
def test_an_operation_changes_a_copy_of_the_object(operation, expected):
    """The original object does not change."""
    before = copy.deepcopy(OBJ)
    assert apply_json_patch(OBJ, [operation]) == expected
    assert before == OBJ


@pytest.mark.parametrize(
    "operation",
    [
        op("remove", "/a/z"),
        op("remove", "/l/3"),
        op("add", "/l/9", value=1),
        op("add", "/z/y", value=1),
        op("replace", "/z/y", value=1),
        op("test", "/a/b", value=True),
        op("test", "/a/b", value=2),
        op("add", "a", value=1),
        op("add", "/l/x", value=1),
        op("frob", "/a"),
        {"op": "add", "value": 1},
        op("move", "/c"),
        op("copy", "/c", **{"from": ""}),
        op("add", "", value={}),
        op("replace", "", value=[]),
        op("replace", "", value=1),
        "add",
    ],
    ids=str,
)
def test_an_invalid_operation_is_refused(operation):
    """The message contains no details, as in upstream."""
    with pytest.raises(ApiError) as refused:
        apply_json_patch(OBJ, [operation])
    assert refused.value.code == 422
    assert refused.value.message == "the server rejected our request due to an error in our request"


@pytest.mark.parametrize(
    ("operation", "problem"),
    [
        (
            op("remove", "/a/z"),
            "error in remove for path: '/a/z': Unable to remove nonexistent key: z: missing value",
        ),
        (
            op("add", "/z/y", value=1),
            'add operation does not apply: doc is missing path: "/z/y": missing value',
        ),
        (
            op("add", "/l/9", value=1),
            (
                "error in add for path: '/l/9': Unable to access invalid index: 9:"
                " invalid index referenced"
            ),
        ),
        (
            op("replace", "/l/x", value=1),
            "replace operation does not apply: doc is missing key: /l/x: missing value",
        ),
        (
            op("move", "/c", **{"from": "/z/y"}),
            "move operation does not apply: doc is missing from path: /z/y: missing value",
        ),
        (
            op("copy", "/z/y", **{"from": "/a"}),
            "copy operation does not apply: doc is missing destination path: /z/y: missing value",
        ),
        (op("test", "/a/b", value=2), "testing value /a/b failed: test failed"),
        (
            op("add", "/l/x", value=1),
            (
                "error in add for path: '/l/x': value was not a proper array index: 'x':"
                ' strconv.Atoi: parsing "x": invalid syntax'
            ),
        ),
        (
            op("remove", f"/l/{'9' * 20}"),
            (
                f"error in remove for path: '/l/{'9' * 20}':"
                f' strconv.Atoi: parsing "{"9" * 20}": value out of range'
            ),
        ),
        ({"op": "add"}, "add operation failed to decode path: missing value"),
        (
            {"op": "test"},
            "test operation failed to decode path: operation missing path field: missing value",
        ),
        (
            op("move", "/c"),
            "move operation failed to decode from: operation, missing from field: missing value",
        ),
        (
            op("replace", 5, value=1),
            (
                "replace operation failed to decode path: json: cannot unmarshal number into Go"
                " value of type string"
            ),
        ),
        (op("frob", "/a"), "Unexpected kind: frob"),
    ],
    ids=str,
)
def test_the_error_of_a_failed_operation_has_the_problem(operation, problem):
    """Upstream states it if a webhook or a policy has made the patch."""
    with pytest.raises(PatchFailedError) as refused:
        apply_json_patch(OBJ, [operation])
    assert refused.value.problem == problem


def test_a_tested_text_is_compared_with_the_objects_text_as_encoding_json_writes_it():
    r"""encoding/json writes a backspace as \b."""
    assert parts_equal("a\bb\f<", msgspec.Raw(rb'"a\bb\f\u003c"'))
    assert not parts_equal("a\bb", msgspec.Raw(rb'"a\u0008b"'))


def test_one_invalid_operation_refuses_the_whole_patch():
    with pytest.raises(ApiError):
        apply_json_patch(OBJ, [op("add", "/x", value=1), op("remove", "/zz")])


def test_escaped_keys_in_pointers_are_decoded():
    assert apply_json_patch({"a/b": 1, "c~d": 2}, [op("remove", "/a~1b")]) == {"c~d": 2}


def test_a_patch_with_too_many_operations_is_refused():
    with pytest.raises(ApiError) as refused:
        apply_json_patch({}, [op("test", "", value={})] * (OPERATIONS_MAX + 1))
    assert refused.value.code == 413
