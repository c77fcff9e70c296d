"""The store compared with a model: versions, watches and conflicts of random requests."""

from __future__ import annotations

import json

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import POD, find_kind
from fairlead.apiserver.registry.deletion import Deletion
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import ChangeType

CONFIG_MAP = find_kind("configmap")
NAMES = st.sampled_from(["a", "b", "c"])
KINDS = st.sampled_from([POD, CONFIG_MAP])
LABELS = st.dictionaries(st.sampled_from("xyz"), st.sampled_from("12"), max_size=2)


class Ids:
    count = 0

    def new_uid(self, kind, namespace, name):
        self.count += 1
        return f"uid-{self.count}"

    def new_suffix(self):
        raise AssertionError("every object is named here")


def manifest(kind, name, labels, node=""):
    obj = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": "n", "labels": labels},
    }
    if kind is POD:
        obj["spec"] = {"containers": [{"name": "c", "image": "i"}]}
        if node:
            obj["spec"]["nodeName"] = node
    return obj


class StoreMachine(RuleBasedStateMachine):
    """`seen` contains the JSON text of every object that the store returned, by version."""

    versions = Bundle("versions")

    def __init__(self):
        super().__init__()
        self.store = Store(Ids())
        self.time = 0
        self.replayed = {}
        self.changes = []
        self.last_version = 0
        self.frozen = []
        self.store.subscribe(self.hear)

    def hear(self, change):
        self.changes.append(change)
        self.frozen.append((change.object, json.dumps(change.object)))

    def attempt(self, act, *args, **options):
        """Return the result of `act`, None if it is refused; a refusal must change nothing."""
        before = self.store.version
        try:
            return act(*args, **options)
        except ApiError:
            assert self.store.version == before
            return None

    @rule(target=versions, kind=KINDS, name=NAMES, labels=LABELS, node=st.sampled_from(["", "n1"]))
    def create(self, kind, name, labels, node):
        there = self.store.find(kind, "n", name)
        made = self.attempt(self.store.create, manifest(kind, name, labels, node), self.time)
        assert (made is None) == (there is not None)
        return multiple() if made is None else made

    @rule(target=versions, old=versions, labels=LABELS)
    def update_from(self, old, labels):
        """An update based on `old` succeeds only if `old` is still the newest version."""
        kind = POD if old["kind"] == "Pod" else CONFIG_MAP
        newest = self.store.find(kind, "n", old["metadata"]["name"])
        changed = {**old, "metadata": {**old["metadata"], "labels": labels}}
        written = (
            None
            if newest is None
            else self.attempt(self.store.update, kind, newest, changed, self.time)
        )
        fresh = (
            newest is not None
            and newest["metadata"]["resourceVersion"] == (old["metadata"]["resourceVersion"])
        )
        assert (written is not None) == fresh
        return multiple() if written is None else written

    @rule(target=versions, kind=KINDS, name=NAMES, value=st.sampled_from(["1", "2", None]))
    def patch(self, kind, name, value):
        patch = {"metadata": {"annotations": {"p": value}}}
        written = self.attempt(self.store.patch, kind, "n", name, patch, self.time)
        return multiple() if written is None else written

    @rule(name=NAMES, phase=st.sampled_from(["Running", "Succeeded"]))
    def patch_status(self, name, phase):
        self.attempt(self.store.patch_status, POD, "n", name, {"phase": phase}, self.time)

    @rule(kind=KINDS, name=NAMES, grace=st.sampled_from([None, 0, 10]))
    def delete(self, kind, name, grace):
        deletion = Deletion(grace_period_s=grace)
        self.attempt(self.store.delete, kind, "n", name, self.time, deletion)

    @rule(kind=KINDS, name=NAMES, finalizers=st.sampled_from([["x.io/f"], None]))
    def finalize(self, kind, name, finalizers):
        patch = {"metadata": {"finalizers": finalizers}}
        self.attempt(self.store.patch, kind, "n", name, patch, self.time)

    @rule(seconds=st.integers(1, 60))
    def wait(self, seconds):
        self.time += seconds * 10**9

    @invariant()
    def versions_only_grow_one_by_one(self):
        fresh = self.store.changes_since(self.last_version)
        expected = range(self.last_version + 1, self.store.version + 1)
        assert [change.version for change in fresh] == list(expected)
        for change in fresh:
            assert change.object["metadata"]["resourceVersion"] == str(change.version)
        self.last_version = self.store.version

    @invariant()
    def the_log_replays_to_what_is_stored(self):
        state = {}
        for change in self.store.changes_since(0):
            key = (change.kind.resource, change.object["metadata"]["name"])
            assert (key in state) == (change.type is not ChangeType.ADDED)
            assert state.get(key) == change.previous
            if change.type is ChangeType.DELETED:
                del state[key]
            else:
                state[key] = change.object
        stored = {
            (kind.resource, obj["metadata"]["name"]): obj
            for kind in (POD, CONFIG_MAP)
            for obj in self.store.list(kind)
        }
        assert state == stored
        assert self.changes == self.store.changes_since(0)

    @invariant()
    def what_was_given_out_never_changes(self):
        assert [json.dumps(obj) for obj, _ in self.frozen] == [text for _, text in self.frozen]

    @invariant()
    def nothing_stays_that_may_go(self):
        for obj in self.store.list(CONFIG_MAP):
            meta = obj["metadata"]
            assert not meta.get("deletionTimestamp") or meta.get("finalizers")
        for obj in self.store.list(POD):
            meta = obj["metadata"]
            held = meta.get("finalizers") or meta.get("deletionGracePeriodSeconds")
            assert not meta.get("deletionTimestamp") or held


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(max_examples=60, stateful_step_count=30)


def test_equal_requests_give_equal_stores(now):
    """The store has no internal source of randomness or time."""
    first, second = Store(Ids()), Store(Ids())
    for store in (first, second):
        store.create(manifest(POD, "a", {"x": "1"}), now)
        store.delete(POD, "n", "a", now)
        with pytest.raises(ApiError):
            store.get(POD, "n", "a")
    assert first.changes_since(0) == second.changes_since(0)
