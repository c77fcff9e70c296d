"""Storage: versions, the change log, and the subscribers."""

from __future__ import annotations

import pytest

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import NODE, POD
from fairlead.apiserver.storage.storage import Storage


def pod(name="a", **more):
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "n"}, **more}


def test_all_kinds_share_one_counter():
    storage = Storage()
    first = storage.put(POD, pod())
    second = storage.put(NODE, {"metadata": {"name": "x"}})
    assert [obj["metadata"]["resourceVersion"] for obj in (first, second)] == ["1", "2"]
    assert storage.version == 2


def test_items_are_sorted_by_namespace_and_name_bytewise():
    storage = Storage()
    for name in ("b-2", "b1", "b", "b.1", "a0", "aa", "a"):
        storage.put(POD, pod(name))
    names = [obj["metadata"]["name"] for obj in storage.items(POD)]
    assert names == ["a", "a0", "aa", "b", "b-2", "b.1", "b1"]
    assert list(storage.items(POD, "other")) == []


def test_resources_without_objects_count_as_missing():
    """Also if they had objects before."""
    storage = Storage()
    wanted = frozenset(("pods", "nodes"))
    found = [storage.has_any(wanted)]
    storage.put(POD, pod())
    found += [storage.has_any(wanted), storage.has_any(frozenset(("nodes",)))]
    storage.remove(POD, "n", "a")
    assert [*found, storage.has_any(wanted)] == [False, True, False, False]


def test_a_change_has_the_previous_object_and_a_deletion_has_a_new_version():
    storage = Storage()
    changes = []
    storage.subscribe(changes.append)
    storage.put(POD, pod(x=1))
    storage.put(POD, pod(x=2))
    storage.remove(POD, "n", "a")
    assert [(c.type, c.version, c.object["metadata"]["resourceVersion"]) for c in changes] == [
        ("ADDED", 1, "1"),
        ("MODIFIED", 2, "2"),
        ("DELETED", 3, "3"),
    ]
    assert [c.previous and c.previous["x"] for c in changes] == [None, 1, 2]
    assert storage.find(POD, "n", "a") is None


def test_a_stored_object_shares_the_parts_of_the_given_object_unchanged():
    storage = Storage()
    given = pod(spec={"x": [1]})
    stored = storage.put(POD, given)
    assert stored["spec"] is given["spec"]
    assert "resourceVersion" not in given["metadata"]


def test_an_unsubscribed_listener_gets_no_changes():
    storage = Storage()
    changes = []
    leave = storage.subscribe(changes.append)
    storage.put(POD, pod("a"))
    leave()
    storage.put(POD, pod("b"))
    assert [change.version for change in changes] == [1]


def test_a_listener_gets_the_changes_of_the_selected_resources():
    """This includes resources that changed before the subscription."""
    storage = Storage()
    storage.put(NODE, {"metadata": {"name": "x"}})
    changes = []
    leave = storage.subscribe(changes.append, lambda resource: resource == "nodes")
    storage.put(POD, pod())
    storage.put(NODE, {"metadata": {"name": "x"}})
    storage.remove(NODE, "", "x")
    leave()
    storage.put(NODE, {"metadata": {"name": "x"}})
    assert [change.version for change in changes] == [3, 4]


def test_the_log_returns_the_changes_after_a_version():
    storage = Storage()
    for name in "abc":
        storage.put(POD, pod(name))
    assert [change.version for change in storage.changes_since(1)] == [2, 3]
    assert storage.changes_since(3) == []
    assert storage.changes_since(9) == []  # a watch from the future waits


def test_a_compacted_version_is_named_in_the_refusal():
    storage = Storage(log_capacity=2)
    for name in "abcd":
        storage.put(POD, pod(name))
    assert [change.version for change in storage.changes_since(2)] == [3, 4]
    with pytest.raises(ApiError) as refusal:
        storage.changes_since(1)
    assert (refusal.value.reason, refusal.value.code) == ("Expired", 410)
    assert refusal.value.message == "too old resource version: 1 (2)"


def test_a_storage_without_a_log_has_no_earlier_changes():
    storage, changes = Storage(log_capacity=0), []
    storage.subscribe(changes.append)
    for name in "ab":
        storage.put(POD, pod(name))
    assert [change.version for change in changes] == [1, 2]
    assert storage.changes_since(2) == []
    with pytest.raises(ApiError):
        storage.changes_since(1)


def test_restored_objects_are_not_in_the_log():
    storage = Storage()
    storage.restore([(POD, {"metadata": {"name": "a", "resourceVersion": "40"}})], 41)
    assert storage.changes_since(41) == []
    with pytest.raises(ApiError):
        storage.changes_since(40)
    assert storage.put(NODE, {"metadata": {"name": "x"}})["metadata"]["resourceVersion"] == "42"


def test_a_rewritten_object_keeps_its_version_and_is_no_change():
    """The log and the listeners see no change; an object that `read` returns itself is kept."""
    storage = Storage()
    changed, same = (
        storage.put(NODE, {"metadata": {"name": name}, "spec": {}}) for name in ("changed", "same")
    )
    seen = []
    storage.subscribe(seen.append)
    storage.rewrite(NODE, lambda obj: obj if obj is same else {**obj, "spec": {"a": "b"}})
    assert storage.find(NODE, "", "changed") == {**changed, "spec": {"a": "b"}}
    assert storage.find(NODE, "", "same") is same
    assert (storage.version, seen) == (2, [])


def test_a_watch_cannot_start_before_its_objects_were_rewritten():
    """Otherwise, a client would not notice that it must list the objects again."""
    storage = Storage()
    for name in ("a", "b"):
        storage.put(NODE, {"metadata": {"name": name}})
    storage.rewrite(NODE, lambda obj: obj)
    assert len(storage.changes_since(1, NODE)) == 1
    storage.rewrite(NODE, lambda obj: {**obj, "spec": {}})
    with pytest.raises(ApiError) as refused:
        storage.changes_since(1, NODE)
    assert refused.value.code == 410
    assert (len(storage.changes_since(1, POD)), storage.changes_since(2, NODE)) == (1, [])
