"""Views of pods that share unchanged parts with earlier views."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.codec import decode, decode_stored
from fairlead.api.pods.replicas import LoadedObjects, Replicas
from fairlead.apiserver.admission.write import PLAIN
from fairlead.apiserver.kind import NODE, POD
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.registry.deletion import Deletion
from fairlead.apiserver.registry.simulation import SIMULATION
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.registry.subresource.binding import bind
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.worlds.informer import decoded
from fairlead.worlds.local.field_manager import controllers_write
from fairlead.worlds.pod_views import PodViews
from fairlead.worlds.seeded_ids import SeededIds

NOW = 1_000_000_000
AT = (POD, "default", "a")


def ready(status):
    """Return a function that writes a condition."""
    conditions = [{"type": "Ready", "status": status, "reason": "R", "message": ""}]
    return lambda store: write_status(store, {}, conditions)


def write_status(store, fields, conditions=()):
    """A status write by a controller; a served store records it in managedFields."""
    write = controllers_write(POD, "status", NOW) if store.registry is API_SERVER else PLAIN
    store.patch_status(*AT, fields, NOW, conditions=conditions, write=write)


WRITES = {
    "a condition": ready("False"),
    "a condition again": ready("True"),
    "no condition": lambda store: write_status(store, {"conditions": None}),
    "a phase": lambda store: write_status(store, {"phase": "Running"}),
    "containers": lambda store: write_status(
        store, {"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}
    ),
    "labels": lambda store: store.patch(*AT, {"metadata": {"labels": {"x": "y"}}}, NOW),
    "a node": lambda store: bind(store, "default", "a", "n1", NOW) if unbound(store) else None,
    "a deletion": lambda store: (
        None if unbound(store) else store.delete(*AT, NOW, Deletion(grace_period_s=30))
    ),
}  # fmt: skip


def unbound(store):
    return not store.get(*AT)["spec"].get("nodeName")


def manifest(version, kind, name, spec):
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def pod(cpu):
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return manifest("v1", "Pod", "a", {"containers": [container]})


@pytest.fixture
def store():
    return new_store()


def new_store(registry=SIMULATION):
    store = Store(SeededIds(0), registry=registry)
    store.create(manifest("v1", "Node", "n1", {}), NOW)
    store.create(pod("1"), NOW)
    return store


def observed(store):
    """Return a list to which each change appends (its view, the completely decoded object)."""
    is_served = store.registry is API_SERVER
    decode_whole = decode_stored if is_served else decode
    views, seen = PodViews(decoded) if is_served else PodViews(), []
    views.load(LoadedObjects([], [Replicas([decode_whole(store.get(*AT))])]))
    store.subscribe(
        lambda change: seen.append((views.view_of(change), decode_whole(change.object)))
    )
    return seen


@pytest.mark.parametrize("registry", [SIMULATION, API_SERVER], ids=["simulated", "served"])
@given(writes=st.lists(st.sampled_from(sorted(WRITES)), max_size=8))
def test_views_equal_decoded_objects(registry, writes):
    """This holds for all writes in any order."""
    store = new_store(registry)
    seen = observed(store)
    for write in writes:
        WRITES[write](store)
    assert [view for view, _ in seen] == [decoded for _, decoded in seen]


@pytest.mark.parametrize("registry", [SIMULATION, API_SERVER], ids=["simulated", "served"])
def test_a_condition_write_shares_spec_labels_and_containers_with_the_old_view(registry):
    """Controllers compare the identity of these parts, to see that nothing else has changed."""
    store = new_store(registry)
    WRITES["containers"](store)
    seen = observed(store)
    WRITES["a condition"](store)
    WRITES["a condition again"](store)
    before, after = (view for view, _ in seen)
    assert after.spec is before.spec
    assert after.metadata.labels is before.metadata.labels
    assert after.status.container_statuses is before.status.container_statuses
    assert after.metadata.resource_version > before.metadata.resource_version


def test_a_binding_shares_all_other_parts_of_the_spec_with_the_old_view():
    store = new_store()
    seen = observed(store)
    WRITES["a phase"](store)
    WRITES["a node"](store)
    before, after = (view for view, _ in seen)
    assert (before.spec.node_name, after.spec.node_name) == ("", "n1")
    assert after.spec.containers is before.spec.containers


def test_a_recreated_pod_shares_nothing_with_the_old_view(store):
    """The recreated pod has another uid."""
    seen = observed(store)
    store.delete(*AT, NOW, Deletion(grace_period_s=0))
    store.create(pod("3"), NOW)
    view, decoded = seen[-1]
    assert view == decoded


@pytest.mark.parametrize("spec", [{"taints": None}, {"podCIDR": "null"}, {"podCIDR": None}, {}])
def test_a_null_is_decoded_as_an_absent_member(spec):
    """The text of an object is searched for "null" without decoding it."""
    node = {**manifest("v1", "Node", "n1", {}), "spec": spec}
    change = StoredChange(ChangeType.ADDED, NODE, node, None, 1, ("", "n1"))
    assert decoded(change) == decode_stored(node)


def test_objects_of_other_kinds_are_decoded_completely(store):
    """Other kinds change rarely."""
    seen = observed(store)
    store.patch(NODE, "", "n1", {"metadata": {"labels": {"x": "y"}}}, NOW)
    assert seen[-1][0] == seen[-1][1]
