"""A storage that keeps most of its objects as text is a storage like the other."""

from __future__ import annotations

import json

import hypothesis.strategies as st
import pytest
from hypothesis import given

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import find_kind
from fairlead.apiserver.storage.compact_storage import CompactStorage
from fairlead.apiserver.storage.storage import Storage

KINDS = [find_kind("configmap"), find_kind("secret")]
STEPS = st.tuples(
    st.sampled_from(["put", "put", "remove"]),
    st.sampled_from(KINDS),
    st.sampled_from("ab"),
    st.sampled_from("xyz"),
    st.integers(0, 9),
)


def manifest(kind, namespace, name, count):
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": kind.kind, "metadata": meta, "data": {"n": str(count)}}


def done(storage, step):
    what, kind, namespace, name, count = step
    if what == "put":
        return storage.put(kind, manifest(kind, namespace, name, count))
    try:
        return storage.remove(kind, namespace, name)
    except KeyError:
        return None


@given(st.lists(STEPS), st.integers(1, 4))
def test_whatever_is_done_to_both_they_say_the_same(steps, hot_max):
    warm, cold = Storage(), CompactStorage(hot_max=hot_max)
    for step in steps:
        assert done(cold, step) == done(warm, step)
    for kind in KINDS:
        assert list(cold.items(kind)) == list(warm.items(kind))
        assert list(cold.items(kind, "a")) == list(warm.items(kind, "a"))
        assert list(cold.unsorted(kind)) == list(warm.unsorted(kind))
        for namespace, name in [("a", "x"), ("b", "z")]:
            assert cold.find(kind, namespace, name) == warm.find(kind, namespace, name)
    assert cold.changes_since(0) == warm.changes_since(0)
    values = [obj for objects in cold._objects.values() for obj in objects.values()]
    assert sum(isinstance(value, dict) for value in values) <= hot_max


def test_what_is_restored_is_text_beyond_what_is_kept_warm():
    kind = KINDS[0]
    objects = [(kind, manifest(kind, "a", str(number), number)) for number in range(9)]
    cold = CompactStorage(hot_max=2)
    cold.restore(objects, 9)
    assert list(cold.unsorted(kind)) == [obj for _, obj in objects]
    assert cold.version == 9
    assert [type(value) for value in cold._objects["configmaps"].values()].count(bytes) == 7


def test_what_is_not_there_cannot_be_removed():
    with pytest.raises(KeyError):
        CompactStorage().remove(KINDS[0], "a", "x")


@pytest.mark.parametrize("storage", [Storage(), CompactStorage()], ids=["warm", "cold"])
def test_texts_are_restored_as_the_objects_that_they_are(storage):
    kind = KINDS[0]
    obj = manifest(kind, "a", "x", 1)
    storage.restore_texts([(kind, ("a", "x"), json.dumps(obj).encode())], 7)
    assert (storage.find(kind, "a", "x"), storage.version) == (obj, 7)
    changed = storage.put(kind, manifest(kind, "a", "x", 2))
    assert storage.changes_since(7)[0].previous == obj
    assert changed["metadata"]["resourceVersion"] == "8"


def test_the_log_reaches_back_less_far_where_objects_are_large():
    """The newest change is there in any case."""
    kind, storage = KINDS[0], CompactStorage(100, log_bytes_max=1_000)
    for count in range(20):
        storage.put(kind, manifest(kind, "a", "x", count))
    known = len(storage.changes_since(storage.version - 5))
    assert known == 5
    with pytest.raises(ApiError):
        storage.changes_since(1)
    storage.put(kind, manifest(kind, "a", "y", "y" * 5_000))
    assert [one.object["metadata"]["name"] for one in storage.changes_since(20)] == ["y"]
    with pytest.raises(ApiError):
        storage.changes_since(19)


@given(st.lists(STEPS), st.integers(1, 8), st.integers(0, 1_000))
def test_a_log_that_is_bounded_by_bytes_has_the_newest_changes(steps, capacity, bytes_max):
    """As many as fit: one more would be too many, or too much."""
    whole, bounded = Storage(100), CompactStorage(capacity, log_bytes_max=bytes_max)
    for step in steps:
        done(whole, step)
        done(bounded, step)
    oldest = bounded.version - _reach(bounded)
    assert bounded.changes_since(oldest) == whole.changes_since(oldest)
    sizes = [len(json.dumps(one.object, separators=(",", ":"))) for one in whole.changes_since(0)]
    sizes.reverse()
    fitting = [n for n in range(1, len(sizes) + 1) if n == 1 or sum(sizes[:n]) <= bytes_max]
    assert _reach(bounded) == min(capacity, max(fitting, default=0))


def _reach(storage):
    """How many changes are known."""
    for number in range(storage.version, -1, -1):
        try:
            return len(storage.changes_since(storage.version - number))
        except ApiError:
            continue
    raise AssertionError


def test_the_text_of_an_object_is_encoded_once():
    """The log, its size and every reader share it; what is deleted is not kept."""
    kind, storage = KINDS[0], CompactStorage()
    changes = []
    storage.subscribe(changes.append)
    stored = storage.put(kind, manifest(kind, "a", "x", 1))
    assert storage.stored_text(kind, stored) is changes[0].text
    assert json.loads(changes[0].text) == stored
    assert storage.stored_text(kind, {**stored}) is None  # another object, if an equal one
    storage.remove(kind, "a", "x")
    assert storage.stored_text(kind, stored) is None
    assert not storage._hot
