"""The index of pods by node agrees with a search through all pods."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from fairlead.apiserver.kind import POD
from fairlead.apiserver.storage.compact_storage import CompactStorage
from fairlead.apiserver.storage.storage import Storage, encode, value_of

NODES = ("n1", "n2")
STEPS = st.tuples(
    st.sampled_from(["put", "put", "remove"]),
    st.sampled_from("ab"),
    st.sampled_from("xyz"),
    st.sampled_from([None, "", *NODES]),
)


def pod(namespace, name, node):
    spec = {} if node is None else {"nodeName": node}
    return {"metadata": {"namespace": namespace, "name": name}, "spec": spec}


def do(storage, step):
    what, namespace, name, node = step
    if what == "put":
        storage.put(POD, pod(namespace, name, node))
    elif storage.find(POD, namespace, name) is not None:
        storage.remove(POD, namespace, name)


def indexed(storage, node):
    return {key: value_of(kept) for key, kept in storage.stored_pods_on(node)}


def searched(storage, node):
    pods = ((key, value_of(kept)) for key, kept in storage.stored_items(POD))
    return {key: found for key, found in pods if found["spec"].get("nodeName") == node}


@pytest.mark.parametrize("make", [Storage, lambda: CompactStorage(hot_max=1)])
@given(before=st.lists(STEPS), after=st.lists(STEPS))
def test_the_index_agrees_with_a_search(make, before, after):
    """The index agrees after its creation and after every later change."""
    storage = make()
    for step in before:
        do(storage, step)
    for step in [("remove", "a", "none", None), *after]:
        do(storage, step)
        for node in NODES:
            assert indexed(storage, node) == searched(storage, node)


def test_the_index_is_rebuilt_after_a_restore():
    storage = CompactStorage()
    storage.put(POD, pod("a", "x", "n1"))
    assert [*indexed(storage, "n1")] == [("a", "x")]
    storage.restore_texts([(POD, ("a", "y"), encode(pod("a", "y", "n1")))], 7)
    assert sorted(indexed(storage, "n1")) == [("a", "x"), ("a", "y")]
