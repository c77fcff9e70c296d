"""A storage that keeps most of its objects as text is a storage like the other."""

from __future__ import annotations

import json

import hypothesis.strategies as st
import pytest
from hypothesis import given

from fairlead.apiserver.cold_storage import ColdStorage
from fairlead.apiserver.kind import find_kind
from fairlead.apiserver.storage import Storage

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
    warm, cold = Storage(), ColdStorage(hot_max=hot_max)
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
    cold = ColdStorage(hot_max=2)
    cold.restore(objects, 9)
    assert list(cold.unsorted(kind)) == [obj for _, obj in objects]
    assert cold.version == 9
    assert [type(value) for value in cold._objects["configmaps"].values()].count(bytes) == 7


def test_what_is_not_there_cannot_be_removed():
    with pytest.raises(KeyError):
        ColdStorage().remove(KINDS[0], "a", "x")


@pytest.mark.parametrize("storage", [Storage(), ColdStorage()], ids=["warm", "cold"])
def test_texts_are_restored_as_the_objects_that_they_are(storage):
    kind = KINDS[0]
    obj = manifest(kind, "a", "x", 1)
    storage.restore_texts([(kind, ("a", "x"), json.dumps(obj).encode())], 7)
    assert (storage.find(kind, "a", "x"), storage.version) == (obj, 7)
    changed = storage.put(kind, manifest(kind, "a", "x", 2))
    assert storage.changes_since(7)[0].previous == obj
    assert changed["metadata"]["resourceVersion"] == "8"
