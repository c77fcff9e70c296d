"""Copied and renewed Leases equal the Leases that all stages of the store would make."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fairlead.apiserver.admission.simulation import SimulatedAdmission
from fairlead.apiserver.kind import LEASE
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.deferred_storage import DeferredStorage
from fairlead.engine.core.command import CreateObject, DeleteObject, ObjectRef, PatchObject
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.issuer import KUBELET
from fairlead.engine.kubelet.node_status.heartbeat import first_renewals, write_lease
from fairlead.testing.builders import make_node
from fairlead.worlds.perform import perform
from fairlead.worlds.seeded_ids import SeededIds
from fairlead.worlds.simulation.lease_write import LeaseWrites

START = seconds(1_700_000_000)
NODES = ("n1", "n2", "n3", "n4.example.com", "Not_valid", "")
SPACE = "kube-node-lease"
LEASES = f"count/{LEASE.resource}"


class World:
    """A store in which Leases pass through all stages."""

    def __init__(self):
        ids = SeededIds(0)
        self.admission = SimulatedAdmission(ids.new_suffix, lambda _, obj: obj)
        storage = DeferredStorage(0)
        self.store = Store(ids, admission=self.admission.plugins, storage=storage)
        self.changes = []
        self.store.subscribe(self.changes.append)

    def perform(self, command, now):
        """Return the outcome of `command`."""
        return perform(self.store, command, now, issuer=KUBELET)

    def result(self):
        changes = [(one.type, one.object, one.version, one.key) for one in self.changes]
        return json.dumps([self.store.version, self.store.list(LEASE), changes])


class CopyingWorld(World):
    """A store in which Leases are copied if possible."""

    def __init__(self):
        super().__init__()
        self.leases = LeaseWrites(self.store)

    def perform(self, command, now):
        return self.leases.perform(command, now, KUBELET) or super().perform(command, now)


def lease(name, every, change):
    """Return a kubelet's command that creates its Lease, modified as `change` specifies."""
    node = make_node(name)
    node = replace(node, metadata=replace(node.metadata, uid=f"uid-{name}"))
    manifest = write_lease(node, None, first_renewals(name, every, START)).manifest
    meta, spec = manifest["metadata"], manifest["spec"]
    match change:
        case "labels":
            meta["labels"] = {"a": "b"}
        case "no owner":
            del meta["ownerReferences"]
        case "no uid":
            meta["ownerReferences"][0]["uid"] = ""
        case "holder":
            spec["holderIdentity"] = "somebody"
        case "time":
            spec["renewTime"] = "2026-01-01T00:00:00Z"
        case "no time":
            spec["renewTime"] = "soon"
        case "duration":
            spec["leaseDurationSeconds"] = 0
        case "null":
            meta["labels"] = None
    return CreateObject(manifest)


def patch(name, patched, uid=""):
    """Return a command that patches the Lease `name`."""
    return PatchObject(ObjectRef("Lease", SPACE, name, uid), patched)


TIME = {"renewTime": "2026-01-01T00:00:00.000000Z"}
PATCHES = (
    {"spec": TIME},
    {"spec": TIME, "metadata": {"annotations": {"fairlead.dev/renewed-every": None}}},
    {"spec": TIME, "metadata": {"annotations": {"fairlead.dev/renewed-every": "9s", "a": ""}}},
    {"spec": TIME, "metadata": {"annotations": {"a": 5}}},
    {"spec": TIME, "metadata": {"annotations": None}},
    {"spec": TIME, "metadata": {"labels": {"a": "b"}}},
    {"spec": TIME, "metadata": {"resourceVersion": "1"}},
    {"spec": TIME | {"holderIdentity": "somebody"}},
    {"spec": {"renewTime": "soon"}},
    {"spec": {"renewTime": None}},
    {"metadata": {"annotations": {"a": "b"}}},
)


def listed(kind, name, namespace=SPACE, api_version="v1", **parts):
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return CreateObject({"apiVersion": api_version, "kind": kind, "metadata": meta, **parts})


changes = st.sampled_from(
    [
        "",
        "",
        "",
        "",
        "labels",
        "no owner",
        "no uid",
        "holder",
        "time",
        "no time",
        "duration",
        "null",
    ]
)
commands = st.one_of(
    st.builds(lease, st.sampled_from(NODES), st.sampled_from([seconds(5), seconds(10)]), changes),
    st.builds(lease, st.sampled_from(NODES[:4]), st.just(seconds(10)), st.just("")),
    st.sampled_from([DeleteObject(ObjectRef("Lease", SPACE, name)) for name in NODES]),
    st.builds(patch, st.sampled_from(NODES[:4]), st.sampled_from(PATCHES)),
    st.builds(patch, st.sampled_from(NODES[:4]), st.sampled_from(PATCHES), st.just("other")),
    st.sampled_from(
        [
            listed("Namespace", "kube-system", ""),
            listed("Namespace", SPACE, ""),
            DeleteObject(ObjectRef("Namespace", "", SPACE)),
            listed("ResourceQuota", "few", spec={"hard": {LEASES: "2"}}),
        ]
    ),
)  # fmt: skip


@given(st.lists(commands, max_size=14))
def test_written_leases_equal_the_results_of_all_stages(script):
    """Other objects may be created, deleted or refused in between."""
    plain, copying = World(), CopyingWorld()
    for second, command in enumerate(script):
        now = START + seconds(second)
        assert copying.perform(command, now) == plain.perform(command, now)
    assert copying.result() == plain.result()
    assert copying.admission.unchecked == plain.admission.unchecked


def test_the_second_lease_is_a_copy():
    """The second Lease shares equal parts with the first Lease."""
    world = CopyingWorld()
    for name in NODES[:2]:
        world.perform(lease(name, seconds(10), ""), START)
    first, second = world.store.list(LEASE)
    assert first["metadata"]["annotations"] is second["metadata"]["annotations"]
