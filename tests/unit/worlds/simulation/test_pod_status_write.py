"""Writes to the status in views of pods have the effects of writes to the store."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairlead.api.codec import decode
from fairlead.apiserver.admission.quota.ledger import QuotaLedgers
from fairlead.apiserver.kind import POD
from fairlead.apiserver.registry.dumped_object import DumpedObject
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.deferred_storage import DeferredStorage
from fairlead.apiserver.storage.storage import Storage
from fairlead.engine.core.command import (
    Bind,
    Condition,
    DeleteObject,
    ObjectRef,
    ObservedCondition,
    PatchObject,
    PatchStatus,
)
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import CommandFailed
from fairlead.worlds.perform import perform
from fairlead.worlds.pod_views import PodViews
from fairlead.worlds.seeded_ids import SeededIds
from fairlead.worlds.simulation.pod_status_write import WRITES_MAX, PodStatusWrites

START = seconds(1_000_000)
NAMES = ("a", "b")


def pod(name, conditions=()):
    """Return a stored pod; its condition has a member that views do not contain."""
    stated = [
        {"type": one, "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z", "x": 1}
        for one in conditions
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1"},
        "spec": {"containers": [{"name": "main"}]},
        "status": {"phase": "Running", "conditions": stated, "qosClass": "BestEffort"},
    }


def dumped(manifest):
    return DumpedObject(POD, decode(manifest), json.dumps(manifest).encode())


class PlainWorld:
    """Performs every command on a store; `view` is the view after the last command."""

    def __init__(self, storage=None):
        self.storage = storage or Storage(0)
        self.store = Store(SeededIds(0), storage=self.storage)
        self.views = PodViews()
        self.quotas = QuotaLedgers(self.storage)
        self.views.load(
            self.store.load([dumped(pod("a")), dumped(pod("b", ("Ready", "Other")))], START)
        )
        self.changes = []
        self.store.subscribe(self.changes.append)

    def perform(self, command, now):
        """Return the outcome and the new views."""
        self.changes.clear()
        outcome = perform(self.store, command, now)
        return isinstance(outcome, CommandFailed), [self.views.view_of(one) for one in self.changes]

    def pods(self):
        return self.store.version, self.store.list(POD)


class FastWorld(PlainWorld):
    """Performs a command on the views if possible."""

    def __init__(self):
        super().__init__(DeferredStorage(0))
        self.writes = PodStatusWrites(self.storage, self.views, self.quotas)
        self.on_views = 0

    def perform(self, command, now):
        view = self.writes.perform(command, now) if isinstance(command, PatchStatus) else None
        if view is None:
            return super().perform(command, now)
        self.on_views += 1
        return False, [view]


def ref(name, uid=None):
    return ObjectRef("Pod", "ns", name, name if uid is None else uid)


texts = st.sampled_from(["", "text"])
conditions = st.builds(
    Condition,
    st.sampled_from(["Ready", "Other", "ContainersReady"]),
    st.sampled_from(["True", "False"]),
    texts,
    texts,
)
targets = st.builds(ref, st.sampled_from(NAMES), st.sampled_from([None, None, "", "a"]))
lists = st.lists(conditions, max_size=3).map(tuple)
container_lists = st.dictionaries(
    st.sampled_from(["containerStatuses", "initContainerStatuses"]),
    st.integers(0, 2).map(lambda restarts: [{"name": "main", "restartCount": restarts}]),
)
commands = st.one_of(
    st.builds(PatchStatus, targets, conditions=lists),
    st.builds(PatchStatus, targets, conditions=lists),
    st.builds(PatchStatus, targets, conditions=lists, resource_version=st.sampled_from(["1", "9"])),
    st.builds(PatchStatus, targets, st.just({"phase": "Failed"}), conditions=lists),
    st.builds(PatchStatus, targets, container_lists, conditions=lists),
    st.builds(
        PatchStatus,
        targets,
        conditions=st.builds(
            ObservedCondition,
            st.just("Ready"),
            st.sampled_from(["True", "False"]),
            texts,
            texts,
            observed_generation=st.sampled_from([0, 1, 2]),
        )
        .map(lambda one: (one,)),
    ),
    st.builds(PatchObject, targets, st.just({"metadata": {"labels": {"x": "y"}}})),
    st.builds(Bind, targets, st.just("n1")),
    st.builds(DeleteObject, targets, st.sampled_from([None, 0])),
    st.sampled_from(NAMES),  # the pod is read
)  # fmt: skip


TEXT, EMPTY = (Condition("Ready", "True", "", message) for message in ("text", ""))


@given(st.lists(commands, max_size=12))
@example([PatchStatus(ref("b"), conditions=some) for some in ((TEXT,), (EMPTY, TEXT))])
def test_views_and_values_equal_those_of_writes_to_the_store(script):
    """Other reads and writes may come in between. A write without effect changes no version."""
    plain, fast = PlainWorld(), FastWorld()
    for second, command in enumerate(script):
        if isinstance(command, str):
            assert fast.store.find(POD, "ns", command) == plain.store.find(POD, "ns", command)
            continue
        now = START + seconds(second)
        assert fast.perform(command, now) == plain.perform(command, now)
    assert json.dumps(fast.pods()) == json.dumps(plain.pods())


def ready(status):
    return PatchStatus(ref("b"), conditions=(Condition("Ready", status),))


@pytest.mark.parametrize("writes", [1, WRITES_MAX, WRITES_MAX + 1, 2 * WRITES_MAX + 3])
def test_no_value_is_created_for_few_pod_status_writes(writes):
    """The number of condition writes that are kept for a pod is limited."""
    world = FastWorld()
    for number in range(writes):
        world.perform(ready("True" if number % 2 else "False"), START)
    assert world.on_views == writes - writes // (WRITES_MAX + 1)
    assert world.store.get(POD, "ns", "b")["status"]["conditions"][0]["status"] == (
        "False" if writes % 2 else "True"
    )


def test_writes_that_views_cannot_decide_are_performed_by_the_store():
    """The view does not contain observedGeneration, so it cannot decide such writes."""
    world = FastWorld()
    world.perform(ready("True"), START)
    newer = ObservedCondition("Ready", "True", observed_generation=2)
    world.perform(PatchStatus(ref("b"), conditions=(newer,)), START)
    world.perform(PatchStatus(ref("missing"), conditions=(Condition("Ready", "False"),)), START)
    assert world.on_views == 0


def test_a_storage_that_logs_changes_needs_the_values():
    """The values are needed for the events of a watch."""
    assert not DeferredStorage().replace_deferred(dumped(pod("a")))
