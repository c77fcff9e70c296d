"""Writes to views of pods have the effects of writes to the store."""

from __future__ import annotations

import json
from typing import ClassVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairlead.api.codec import decode
from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.admission.quota.ledger import QuotaLedgers
from fairlead.apiserver.admission.simulation import SimulatedAdmission
from fairlead.apiserver.kind import NAMESPACE, POD
from fairlead.apiserver.registry.dump.object import DumpedObject
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.registry.subresource.binding import binding
from fairlead.apiserver.storage.deferred_storage import DeferredStorage
from fairlead.apiserver.storage.storage import ChangeType, Storage
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
from fairlead.engine.core.stimulus import CommandFailed, ObjectChanged, ObjectDeleted
from fairlead.worlds.informer import net_changes
from fairlead.worlds.perform import perform
from fairlead.worlds.pod_views import PodViews
from fairlead.worlds.seeded_ids import SeededIds
from fairlead.worlds.simulation.pod_binding import PodBindings
from fairlead.worlds.simulation.pod_deletion import PodDeletions
from fairlead.worlds.simulation.pod_status_write import PodStatusWrites
from fairlead.worlds.simulation.viewed_object import WRITES_MAX, ViewedObjects

START = seconds(1_000_000)
NAMES = ("a", "b", "c", "d")


def pod(name, conditions=(), spec=(), **meta):
    """Return a stored pod; its condition has a member that views do not contain."""
    stated = [
        {"type": one, "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z", "x": 1}
        for one in conditions
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1"} | meta,
        "spec": {
            "containers": [{"name": "main"}],
            "terminationGracePeriodSeconds": 30,
            **dict(spec),
        },
        "status": {"phase": "Running", "conditions": stated, "qosClass": "BestEffort"},
    }


def dumped(manifest):
    return DumpedObject(POD, decode(manifest), json.dumps(manifest).encode())


class PlainWorld:
    """Performs every command on a store; `view` is the view after the last command."""

    def __init__(self, storage=None, namespace_phase=""):
        self.storage = storage or Storage(0)
        admission = SimulatedAdmission(lambda: "abcde", lambda _, obj: obj)
        self.store = Store(SeededIds(0), admission=admission.plugins, storage=self.storage)
        self.views = PodViews()
        self.quotas = QuotaLedgers(self.storage)
        on_node = {"nodeName": "n1"}
        pods = (
            pod("a"),
            pod("b", ("Ready", "Other")),
            pod("c", ("Ready",), on_node, generation=3),
            pod("d", ("Ready",), on_node, finalizers=["example.com/kept"]),
        )
        namespace = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "ns"},
            "status": {"phase": namespace_phase or "Active"},
        }
        self.views.load(self.store.load([namespace, *map(dumped, pods)], START))
        self.changes = []
        self.store.subscribe(self.changes.append)

    def perform(self, command, now):
        """Return whether the command failed, and the stimuli of the changes."""
        self.changes.clear()
        outcome = perform(self.store, command, now)
        return isinstance(outcome, CommandFailed), [
            (ObjectDeleted if one.type is ChangeType.DELETED else ObjectChanged)(
                self.views.view_of(one)
            )
            for one in net_changes(self.changes)
        ]

    def pods(self):
        return self.store.version, self.store.list(POD)


class FastWorld(PlainWorld):
    """Performs a command on the views if possible."""

    def __init__(self, namespace_phase=""):
        super().__init__(DeferredStorage(0), namespace_phase)
        pods = ViewedObjects(POD, self.storage, self.views, self.quotas)
        self.writes = PodStatusWrites(pods)
        self.bindings = PodBindings(pods, self.store.admission, self.storage)
        self.deletions = PodDeletions(pods)
        self.on_views = 0

    def perform(self, command, now):
        change = self.performed_on_view(command, now)
        if change is None:
            return super().perform(command, now)
        self.on_views += 1
        return False, [change]

    def performed_on_view(self, command, now):
        match command:
            case PatchStatus():
                view = self.writes.perform(command, now)
            case Bind():
                view = self.bindings.perform(command, now)
            case DeleteObject():
                return self.deletions.perform(command, now)
            case _:
                return None
        return None if view is None else ObjectChanged(view)


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
starts = st.fixed_dictionaries(
    {},
    optional={
        "phase": st.sampled_from(["Running", "Failed", "Unknown", "Wrong", None]),
        "startTime": st.sampled_from(["1970-01-01T00:00:09Z", "today", None]),
    },
)
commands = st.one_of(
    st.builds(PatchStatus, targets, conditions=lists),
    st.builds(PatchStatus, targets, conditions=lists),
    st.builds(PatchStatus, targets, conditions=lists, resource_version=st.sampled_from(["1", "9"])),
    st.builds(PatchStatus, targets, starts, conditions=lists),
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
    st.builds(Bind, targets, st.sampled_from(["n1", "n1", ""])),
    st.builds(DeleteObject, targets, st.sampled_from([None, None, 0, 0, 5, -1])),
    st.builds(DeleteObject, targets, st.just(0), policy=st.sampled_from(["Orphan", "Foreground"])),
    st.sampled_from(NAMES),  # the pod is read
)  # fmt: skip


TEXT, EMPTY = (Condition("Ready", "True", "", message) for message in ("text", ""))


@given(st.lists(commands, max_size=12))
@example([PatchStatus(ref("b"), conditions=some) for some in ((TEXT,), (EMPTY, TEXT))])
@example([PatchStatus(ref("a"), {"nominatedNodeName": "n1"}), Bind(ref("a"), "n2"), "a"])
@example([DeleteObject(ref("c")), PatchStatus(ref("c"), conditions=(TEXT,)), "c"])
@example([DeleteObject(ref("c")), DeleteObject(ref("c"), 0), "c"])
@example([DeleteObject(ref("c"), 5), DeleteObject(ref("c")), "c"])
@example(["b", PatchStatus(ref("b", "a"), {"phase": "Failed"})])
@example([DeleteObject(ref("d")), DeleteObject(ref("d"), 0), "d"])
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


def test_a_pod_is_bound_started_and_deleted_by_its_view():
    """This is the life of most pods that replace evicted pods."""
    world = FastWorld()
    start = {"phase": "Running", "startTime": "1970-01-12T13:46:40Z"}
    world.perform(Bind(ref("b"), "n1"), START)
    world.perform(PatchStatus(ref("b"), start, (Condition("Ready", "False"),)), START)
    world.perform(DeleteObject(ref("b"), 5), START)
    _, (gone,) = world.perform(DeleteObject(ref("b"), 0), START + seconds(5))
    assert world.on_views == 4
    assert isinstance(gone, ObjectDeleted)
    assert world.store.find(POD, "ns", "b") is None


@pytest.mark.parametrize(
    "phase", ["Terminating", pytest.param("", id="a namespace that is not terminating")]
)
def test_the_store_refuses_a_binding_that_admission_refuses(phase):
    """No pod is bound in a terminating namespace."""
    world = FastWorld(namespace_phase=phase)
    failed, _ = world.perform(Bind(ref("b"), "n1"), START)
    assert failed == bool(phase)


def test_a_namespace_that_begins_to_terminate_admits_no_further_binding():
    """The pods of a namespace are admitted alike until a Namespace changes."""
    world = FastWorld()
    assert world.perform(Bind(ref("a"), "n1"), START)[0] is False
    (namespace,) = world.store.list(NAMESPACE)
    world.storage.put(NAMESPACE, namespace | {"status": {"phase": "Terminating"}})
    assert world.perform(Bind(ref("b"), "n1"), START)[0] is True
    assert world.on_views == 1


def test_plugins_read_only_namespaces_to_admit_a_binding():
    """Therefore PodBindings need not ask them for each pod of a namespace."""

    class Reading(Storage):
        read: ClassVar[set[str]] = set()

        def find(self, kind, namespace, name):
            self.read.add(kind.resource)
            return super().find(kind, namespace, name)

    body = binding("ns", "b", "n1")
    created = AdmissionAttributes(Operation.CREATE, POD, body, None, "binding")
    storage = Reading(0)
    plugins = SimulatedAdmission(lambda: "abcde", lambda _, obj: obj).plugins
    assert all(one.admit(created, storage) is body for one in plugins)
    assert storage.read == {NAMESPACE.resource}


def test_no_plugin_of_a_simulation_handles_the_deletion_of_a_pod():
    """A plugin that read the pod would raise KeyError, because the pod is empty."""
    storage, deletion = Storage(0), AdmissionAttributes(Operation.DELETE, POD, {})
    plugins = SimulatedAdmission(lambda: "abcde", lambda _, obj: obj).plugins
    assert all(one.admit(deletion, storage) is deletion.obj for one in plugins)


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
    assert not DeferredStorage().remove_deferred(POD, ("ns", "a"), 1)
