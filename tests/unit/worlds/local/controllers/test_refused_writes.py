"""Controllers repeat refused writes."""

from __future__ import annotations

import pytest

from fairlead.apiserver.kind import find_kind
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.registry.store import Store
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import CommandFailed, FailureReason
from fairlead.engine.engine import Engine
from fairlead.engine.state.cluster import Cluster
from fairlead.worlds.driver import Driver
from fairlead.worlds.local.controllers.api_service_registration import ApiServiceRegistration
from fairlead.worlds.local.controllers.apiserver_records import ApiServerRecords
from fairlead.worlds.local.controllers.kubernetes_service import KubernetesService
from fairlead.worlds.local.controllers.namespace_defaults import NamespaceDefaults
from fairlead.worlds.local.controllers.node_ttl import NodeTtl
from fairlead.worlds.local.controllers.service_cidr import ServiceCidrs
from fairlead.worlds.local.world import LocalWorld
from fairlead.worlds.seeded_ids import SeededIds


class RefusingWorld:
    """A world that refuses the first attempt of each write, or every attempt if `always` is set."""

    def __init__(self, world, reason, *, always=False):
        self.world = world
        self.reason = reason
        self.always = always
        self.refused = []
        self.poll = world.poll
        self.next_event = world.next_event

    def perform(self, issued, now):
        if self.always or issued.command not in self.refused:
            self.refused.append(issued.command)
            return CommandFailed(issued.command, self.reason, "refused by the test")
        return self.world.perform(issued, now)


def namespace(name):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Widget", "plural": "widgets"},
        "scope": "Cluster",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
CIDR = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "ServiceCIDR",
    "metadata": {"name": "c"},
    "spec": {"cidrs": ["10.9.0.0/24"]},
}


def records(storage):
    return ApiServerRecords(storage, lambda: "id", "host", "10.0.0.1:6443", "PEM")


def run(make, manifest, reason, *, always=False):
    """Return the store and the refused commands after ten seconds."""
    store = Store(SeededIds(0), registry=API_SERVER)
    local = LocalWorld(store)
    world = RefusingWorld(local, reason, always=always)
    driver = Driver(Engine(Cluster(), [make(store.storage)]), world, now=0)
    store.create(manifest, 0)
    driver.run(seconds(10))
    return store, world.refused


@pytest.mark.parametrize(
    ("make", "manifest", "kind", "place", "name"),
    [
        (ApiServiceRegistration, WIDGETS, "APIService", "", "v1.example.com"),
        (records, namespace("kube-system"), "Lease", "kube-system", None),
        (
            lambda storage: KubernetesService(storage, "10.0.0.1:6443"),
            namespace("default"),
            "Service",
            "default",
            "kubernetes",
        ),
        (NamespaceDefaults, namespace("a"), "ServiceAccount", "a", "default"),
    ],
    ids=["APIService", "Lease", "Service", "ServiceAccount"],
)
def test_a_refused_creation_is_repeated(make, manifest, kind, place, name):
    store, refused = run(make, manifest, FailureReason.INTERNAL_ERROR)
    assert refused
    found = [one["metadata"]["name"] for one in store.list(find_kind(kind))]
    assert found
    assert name in (None, *found)
    assert all(one.target.namespace in ("", place) for one in refused)


def test_a_refused_annotation_of_a_node_is_repeated():
    store, _ = run(lambda _: NodeTtl(), NODE, FailureReason.CONFLICT)
    found = store.get(find_kind("Node"), "", "n")["metadata"]["annotations"]
    assert found["node.alpha.kubernetes.io/ttl"] == "0"


def test_a_refused_condition_of_a_service_cidr_is_repeated():
    store, refused = run(ServiceCidrs, CIDR, FailureReason.INTERNAL_ERROR)
    found = store.get(find_kind("ServiceCIDR"), "", "c")
    assert found["metadata"]["finalizers"]
    assert [one["type"] for one in found["status"]["conditions"]] == ["Ready"]
    assert len(refused) == 3  # the repeated condition has another time


def test_a_forbidden_write_is_not_repeated():
    """The controller acts again when the quota changes."""
    forbidden = FailureReason.FORBIDDEN
    _, refused = run(NamespaceDefaults, namespace("a"), forbidden, always=True)
    assert len(refused) == 1
