"""Strategic merge patch: list items merged by key, and directives."""

from __future__ import annotations

import copy

import pytest

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.patch.strategicpatch.merge import apply_strategic_merge
from fairlead.apiserver.schema.model import schema_of

POD = schema_of("v1", "Pod")
A = {"name": "a", "image": "a:1"}
B = {"name": "b", "image": "b:1"}
C = {"name": "c", "image": "c:1"}


def patched(patch, **spec):
    obj = {"metadata": {"finalizers": ["x/1", "x/2"], "labels": {"l": "1"}}, "spec": spec}
    before = copy.deepcopy(obj)
    made = apply_strategic_merge(POD, obj, patch)
    assert obj == before
    return made


def containers(*patch, order=None, current=(A, B)):
    spec = {"containers": list(patch)} if patch else {}
    if order is not None:
        spec["$setElementOrder/containers"] = [{"name": name} for name in order]
    return patched({"spec": spec}, containers=list(current))["spec"]["containers"]


def finalizers(**patch):
    return patched({"metadata": patch})["metadata"]["finalizers"]


def test_items_are_merged_by_their_key():
    assert containers({"name": "b", "image": "b:2"}) == [A, {"name": "b", "image": "b:2"}]


def test_new_items_come_first():
    assert containers(C) == [C, A, B]


def test_a_delete_directive_removes_an_item():
    assert containers({"name": "a", "$patch": "delete"}) == [B]


def test_deleting_a_missing_item_changes_nothing():
    assert containers({"name": "z", "$patch": "delete"}) == [A, B]


@pytest.mark.parametrize("place", [0, 1])
def test_a_replace_directive_anywhere_in_a_list_replaces_the_list(place):
    items = [C]
    items.insert(place, {"$patch": "replace"})
    assert containers(*items) == [C]


@pytest.mark.parametrize(
    ("order", "names"),
    [(["b", "a"], "bac"), (["a", "c", "b"], "acb"), (["c"], "cab")],
)
def test_set_element_order_sorts_the_items(order, names):
    """Items in the patch have its order; the other items stay between them."""
    patch = () if "c" not in order else (C,)
    current = (A, B, C) if "c" not in order else (A, B)
    made = containers(*patch, order=order, current=current)
    assert "".join(item["name"] for item in made) == names


def test_a_list_that_contradicts_set_element_order_is_refused():
    with pytest.raises(ApiError, match="doesn't match \\$setElementOrder list") as refused:
        containers(C, order=["a"])
    assert refused.value.code == 500


def test_lists_of_strings_are_merged_as_sets():
    assert finalizers(finalizers=["x/1", "x/3"]) == ["x/1", "x/3", "x/2"]


def test_strings_are_removed_by_delete_from_primitive_list():
    gone = {"$deleteFromPrimitiveList/finalizers": ["x/1"]}
    assert finalizers(**gone) == ["x/2"]
    assert finalizers(**gone, finalizers=["x/9"]) == ["x/9", "x/2"]


def test_lists_without_a_merge_strategy_are_replaced():
    old, new = {"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}
    made = patched({"spec": {"tolerations": [new]}}, tolerations=[old])
    assert made["spec"]["tolerations"] == [new]


def test_null_removes_a_field():
    assert patched({"spec": {"nodeName": None}}, nodeName="n") == {
        "metadata": {"finalizers": ["x/1", "x/2"], "labels": {"l": "1"}},
        "spec": {},
    }


def test_a_replace_directive_replaces_a_map():
    made = patched({"metadata": {"labels": {"$patch": "replace", "n": "2"}}})
    assert made["metadata"]["labels"] == {"n": "2"}


def test_retain_keys_removes_the_other_keys():
    volume = {"name": "v", "emptyDir": {}}
    patch = {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}
    made = patched({"spec": {"volumes": [patch]}}, volumes=[volume])
    assert made["spec"]["volumes"] == [{"name": "v", "hostPath": {"path": "/x"}}]


class Compared(str):
    """A text that counts its comparisons."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other):
        Compared.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_many_keys_are_retained_in_linear_time():
    names = [f"k{at}" for at in range(1_000)]
    labels = {"$retainKeys": list(map(Compared, names)), **dict.fromkeys(names, "x")}
    made = patched({"metadata": {"labels": labels}})
    assert len(made["metadata"]["labels"]) == 1_000
    assert Compared.compared < 5_000


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        (
            {"spec": {"containers": [{"image": "x"}]}},
            500,
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (
            {"metadata": {"labels": {"$patch": "frob"}}},
            500,
            "unknown patch type: frob in map: map[$patch:frob]",
        ),
        (
            {"spec": {"containers": [{"name": "c"}, None]}},
            500,
            "list element types are not identical: [[map[image:a:1 name:a]] [map[name:c] <nil>]]",
        ),
        (
            {"spec": {"$deleteFromPrimitiveList/containers": ["a"]}},
            500,
            "list element types are not identical: [[map[image:a:1 name:a]] [a]]",
        ),
        (
            {"spec": {"$setElementOrder/containers": "x"}},
            500,
            "expected a []interface {}, but received a string",
        ),
        (
            {"spec": {"$setElementOrder/nope": ["x"]}},
            500,
            'unable to find api field in struct PodSpec for the json field "nope"',
        ),
        ({"spec": {"$retainKeys": "x"}}, 400, "invalid patch format of retainKeys"),
        (
            {"spec": {"$retainKeys": ["a"], "nodeName": "n"}},
            400,
            "invalid patch format of retainKeys",
        ),
    ],
)
def test_an_invalid_patch_is_refused(patch, code, message):
    """A refused patch gets upstream's message."""
    with pytest.raises(ApiError) as refused:
        patched(patch, containers=[A])
    assert (refused.value.code, refused.value.message) == (code, message)
