"""Writes that are copied from earlier pods store the same as writes through all stages."""

from __future__ import annotations

from collections import Counter
from hashlib import shake_128
from itertools import count

import pytest

from fairlead.apiserver.kind import POD
from fairlead.apiserver.negotiation.serializer import encode
from fairlead.engine.core.command import Bind, Condition, ObjectRef, PatchStatus
from fairlead.engine.core.issuer import Component
from fairlead.worlds.local.kubelet.pod_status import ReportInputs
from fairlead.worlds.local.pod_write_copy import PodWriteCopies

CONTAINER = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
INITIAL = {"name": "before", "image": "i"}
SCHEDULER = Component.SCHEDULER
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def a_pod(name):
    spec = {"containers": [CONTAINER]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def deployment(name, replicas, **spec):
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER], **spec}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def history(cluster):
    """Return every version of every object of a cluster whose workloads have many pods."""
    seen = []
    cluster.local.store.subscribe(
        lambda change: seen.append((change.type, change.kind.kind, encode(change.object)))
    )
    cluster.ask("POST", DEPLOYMENTS, deployment("web", 6))
    cluster.pass_time(3)
    cluster.ask("POST", DEPLOYMENTS, deployment("db", 4, initContainers=[INITIAL]))
    cluster.ask("POST", DEPLOYMENTS, deployment("host", 4, hostNetwork=True))
    cluster.pass_time(3)
    cluster.ask("POST", DEPLOYMENTS, deployment("huge", 3, nodeSelector={"no": "node"}))
    for number, pod in enumerate(cluster.list("Pod")):
        path = f"{PODS}/{pod['metadata']['name']}"
        if number % 3 == 0:
            cluster.ask("DELETE", path)
        elif number % 3 == 1:
            patch = {"metadata": {"annotations": {"seen": pod["status"].get("podIP", "")}}}
            cluster.ask("PATCH", path, patch, "application/merge-patch+json")
            own = {"status": {"conditions": [{"type": "example.com/own", "status": "True"}]}}
            cluster.ask("PATCH", f"{path}/status", own, "application/strategic-merge-patch+json")
    for _ in range(4):
        cluster.pass_time(20)
    return seen


@pytest.fixture
def same_ids(monkeypatch):
    """Returns a function to call before each cluster, so that all get equal random ids."""

    def install():
        numbers = count()

        def token_bytes(size):
            return shake_128(str(next(numbers)).encode()).digest(size)

        monkeypatch.setattr("fairlead.worlds.local.random_ids.token_bytes", token_bytes)

    return install


def test_copied_writes_store_the_same_versions_of_all_objects(same_ids, make_cluster, monkeypatch):
    """The order of members and the watch events are equal, too."""
    copied, reported = [], []

    def noted(write, results):
        def wrapped(*arguments):
            results.append(write(*arguments))
            return results[-1]

        return wrapped

    same_ids()
    monkeypatch.setattr(PodWriteCopies, "write", noted(PodWriteCopies.write, copied))
    monkeypatch.setattr(
        PodWriteCopies, "write_report", noted(PodWriteCopies.write_report, reported)
    )
    copying = history(make_cluster(nodes=4, zones=2))
    assert sum(copied) > 10
    assert sum(reported) > 10
    same_ids()
    monkeypatch.setattr(PodWriteCopies, "described_report", lambda *_: None)
    assert history(make_cluster(nodes=4, zones=2)) == copying
    same_ids()
    monkeypatch.setattr(PodWriteCopies, "described", lambda *_: None)
    assert history(make_cluster(nodes=4, zones=2)) == copying


def test_pods_share_their_managed_fields_except_addresses(same_ids, make_cluster):
    """Only the object that has an address in a key belongs to one pod."""
    same_ids()
    cluster = make_cluster(nodes=2)
    cluster.ask("POST", DEPLOYMENTS, deployment("web", 6))
    cluster.pass_time(3)
    sets = [
        pod["metadata"]["managedFields"][-1]["fieldsV1"]["f:status"]
        for pod in cluster.local.store.storage.items(POD)
    ]
    shared = Counter(id(one["f:phase"]) for one in sets)
    one, other, *more = (one for one in sets if shared[id(one["f:phase"])] > 1)
    assert len(more) >= 2  # The first pods of the Deployment are not copies.
    assert {key for key in one if one[key] is not other[key]} == {"f:podIPs"}


def test_bindings_to_nodes_of_the_same_zone_have_equal_texts(make_cluster):
    """The pod of a binding gets the zone's labels, so another zone gives another text."""
    cluster = make_cluster(nodes=3, zones=2)
    cluster.local.store.create(a_pod("a"), cluster.clock.now())
    cluster.local.store.create(a_pod("b"), cluster.clock.now())
    copies = PodWriteCopies(cluster.local.store)
    now = cluster.clock.now()
    first, other, third = (node["metadata"]["name"] for node in cluster.list("Node", ""))
    texts = [
        copies.described(Bind(ObjectRef("Pod", "default", pod, ""), node), SCHEDULER, now).text
        for pod, node in (("a", first), ("b", third), ("b", other))
    ]
    assert texts[0] == texts[1] != texts[2]
    gone = Bind(ObjectRef("Pod", "default", "a", ""), "no-node")
    assert copies.described(gone, SCHEDULER, now) is None


def described(cluster, name, fields, **options):
    """Return the description of a kubelet's write to the pod `name`."""
    target = ObjectRef("Pod", "default", name, "")
    command = PatchStatus(target, fields, **options)
    copies = PodWriteCopies(cluster.local.store)
    return copies.described(command, Component.KUBELET, cluster.clock.now())


@pytest.fixture
def cluster(make_cluster):
    cluster = make_cluster(nodes=2)
    for name in "ab":
        meta = {"name": name}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": meta,
            "spec": {"containers": [CONTAINER]},
        }
        cluster.ask("POST", PODS, body)
    cluster.pass_time(5)
    return cluster


def test_pods_in_the_same_state_have_equal_texts(cluster):
    """Their addresses and uids differ."""
    one, other = (described(cluster, name, {"phase": "Failed"}) for name in "ab")
    assert one.text == other.text
    assert one.replaced != other.replaced


def reported(cluster, name, spec, addresses=None):
    """Return the description, by its inputs, of a kubelet's report about the pod `name`."""
    command = PatchStatus(ObjectRef("Pod", "default", name, ""), {"phase": "Failed"})
    inputs = ReportInputs(addresses or {}, spec)
    copies = PodWriteCopies(cluster.local.store)
    return copies.described_report(command, inputs, cluster.clock.now())


@pytest.fixture
def waiting(make_cluster):
    """A cluster with two pending pods that fit on no node, and so have no address."""
    cluster = make_cluster(nodes=0)
    for name in "ab":
        cluster.ask("POST", PODS, a_pod(name))
    cluster.pass_time(1)
    return cluster


def test_equal_inputs_have_the_same_report(waiting):
    spec = {"containers": [CONTAINER]}
    texts = [reported(waiting, name, spec).text for name in "ab"]
    assert texts[0] == texts[1]
    other = {"containers": [{**CONTAINER, "image": "another"}]}
    assert reported(waiting, "b", other).text != texts[1]


def test_reports_contain_the_address_of_their_pod(waiting):
    spec = {"containers": [CONTAINER]}
    one, other = (
        reported(waiting, name, spec, {"hostIP": "10.0.0.1", "podIP": address})
        for name, address in (("a", "10.0.0.7"), ("b", "10.0.0.8"))
    )
    assert one.text == other.text
    assert one.replaced != other.replaced
    same = {"hostIP": "10.0.0.1", "podIP": "10.0.0.1"}  # as with hostNetwork
    assert reported(waiting, "a", spec, same).text != one.text


def test_managed_fields_of_equal_texts_can_differ_in_addresses(cluster):
    """Both pods run, so that a key of their managed fields contains their address."""
    spec = {"containers": [CONTAINER]}
    one, other = (reported(cluster, name, spec) for name in "ab")
    assert one.text == other.text
    assert one.replaced != other.replaced


def test_different_managed_fields_have_different_reports(waiting):
    spec = {"containers": [CONTAINER]}
    store, now = waiting.local.store, waiting.clock.now()
    copies = PodWriteCopies(store)
    command = PatchStatus(ObjectRef("Pod", "default", "a", ""), {"phase": "Failed"})
    inputs = ReportInputs({}, spec)
    texts = []
    for fields in ({"f:a": {}}, {"f:b": {}}, {"f:a": {}}):
        pod = store.find(POD, "default", "a")
        (entry, *_) = pod["metadata"]["managedFields"]
        meta = {**pod["metadata"], "managedFields": [{**entry, "fieldsV1": fields}]}
        store.storage.put(POD, {**pod, "metadata": meta})
        texts.append(copies.described_report(command, inputs, now).text)
    assert texts[0] == texts[2] != texts[1]


def test_times_in_a_different_order_have_different_texts(cluster):
    """managedFields are sorted by time."""
    earlier, later = "2025-12-31T00:00:00Z", "2026-12-31T00:00:00Z"
    texts = [described(cluster, "a", {"startTime": time}).text for time in (earlier, later)]
    assert texts[0] != texts[1]


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({"nominatedNodeName": "node-0"}, {}),
        ({"podIP": "010.0.0.1"}, {}),
        ({"podIP": "fd00::1"}, {}),
        ({"message": "\x7fA"}, {}),
        ({"message": "ends in Z"}, {}),
        ({"phase": "Failed"}, {"resource_version": "1"}),
        ({"message": "x" * 20_000}, {}),
    ],
    ids=[
        "a nomination, which is checked", "an unusual address", "an address of version 6",
        "a marker", "something like a time", "a precondition", "a large text",
    ],
)  # fmt: skip
def test_unusual_writes_go_through_all_stages(cluster, fields, options):
    assert described(cluster, "a", fields, **options) is None


def test_conditions_are_part_of_the_text(cluster):
    """A command can contain conditions in addition to its fields."""
    ready, unready = (
        described(cluster, "a", {}, conditions=(Condition("Ready", status),)).text
        for status in ("True", "False")
    )
    assert ready != unready
