"""Pods that are copied from earlier pods equal the pods that all stages would make."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.apiserver.admission.chain import served_admission
from fairlead.apiserver.admission.plugins.pod_count_limit import PodCountLimit
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.endpoints.field_manager import track
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import NAMESPACE, POD
from fairlead.apiserver.negotiation.serializer import encode
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.registry.deletion import Deletion
from fairlead.apiserver.registry.pod_copy import PodCopies
from fairlead.apiserver.registry.store import PodCopying, Store
from fairlead.apiserver.request import User
from fairlead.worlds.seeded_ids import SeededIds

SECOND = 1_000_000_000
ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}


def manifest(kind, name, version="v1", **parts):
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **parts}


def pod(name, spec=None, **meta):
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    made = manifest("Pod", name, spec={"containers": [container], **(spec or {})})
    return {**made, "metadata": {"name": name, "namespace": "default", **meta}}


def spec(**more):
    return pod("x", more)["spec"]


def pinned(node, *more_values, **affinity):
    """Return the affinity of a DaemonSet's pod for `node`."""
    field = {"key": "metadata.name", "operator": "In", "values": [node, *more_values]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    of_node = {"requiredDuringSchedulingIgnoredDuringExecution": required, **affinity}
    return {"affinity": {"nodeAffinity": of_node}}


PREFERRED = {
    "weight": 1,
    "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
}
# Controllers create the pods of a workload with the same spec object.
SHARED, SHARED_ON_HOST = spec(), spec(hostNetwork=True)
OWN = "example.com/own"
OWNER = {"apiVersion": "v1", "kind": "ReplicaSet", "name": "o", "uid": "u", "controller": True}
# Manifests whose pods differ, and one that is refused.
PODS = {
    "plain": pod,
    "owned": lambda name: pod(name, labels={"app": "a"}, ownerReferences=[OWNER]),
    "host network": lambda name: pod(name, {"hostNetwork": True}),
    "assigned": lambda name: pod(name, {"nodeName": "n1"}),
    "gated": lambda name: pod(name, {"schedulingGates": [{"name": "g.io/a"}]}),
    "with its own token": lambda name: pod(name, {"automountServiceAccountToken": False}),
    "without containers": lambda name: pod(name, {"containers": []}),
    "of a missing class": lambda name: pod(name, {"priorityClassName": "high"}),
    "of its own": lambda name: pod(name, annotations={"a": "b", OWN: f"for {name}"}),
    "of a controller": lambda name: {**pod(name, labels={"app": "b"}), "spec": SHARED},
    "of a revision": lambda name: {**pod(name, labels={"app": "b"}), "spec": SHARED_ON_HOST},
    "like that of a controller": lambda name: pod(name, labels={"app": "b"}),
    "of a DaemonSet": lambda name: pod(name, pinned(f"node-{name}"), ownerReferences=[OWNER]),
    "of another DaemonSet": lambda name: pod(
        name, pinned(f"node-{name}", preferredDuringSchedulingIgnoredDuringExecution=[PREFERRED])
    ),
    "pinned to nothing": lambda name: pod(name, pinned(""), ownerReferences=[OWNER]),
    "pinned to an invalid node": lambda name: pod(name, pinned("Node_1"), ownerReferences=[OWNER]),
    "pinned to two nodes": lambda name: pod(
        name, pinned(f"node-{name}", "b"), ownerReferences=[OWNER]
    ),
    "with a message": lambda name: pod(name, annotations={"a": "\x7f0 web"}),
}
NAMES = ("a", "b", "c", "d", "with.dot", "Wrong_")
LIMIT = {"type": "Container", "default": {"memory": "1Gi"}}
QUOTA = {"spec": {"hard": {"pods": "2"}}, "status": {"hard": {"pods": "2"}, "used": {"pods": "0"}}}
# Other writes, which change the result of admission.
EVENTS = {
    "limits": lambda store, now: store.create(
        manifest("LimitRange", "limits", spec={"limits": [LIMIT]}), now
    ),
    "a quota": lambda store, now: store.put_as_is(manifest("ResourceQuota", "q", **QUOTA), now),
    "a class": lambda store, now: store.create(
        manifest("PriorityClass", "high", "scheduling.k8s.io/v1", value=7, globalDefault=True), now
    ),
    "restrictions": lambda store, now: store.patch(
        NAMESPACE, "", "default", {"metadata": {"labels": {"pod-security.kubernetes.io/enforce":
        "baseline", "pod-security.kubernetes.io/warn": "restricted"}}}, now
    ),
    "no pods": lambda store, now: [
        store.delete(POD, "default", one["metadata"]["name"], now, Deletion(grace_period_s=0))
        for one in store.list(POD)
    ],
}  # fmt: skip


class Server:
    """A store with the plugins of a local cluster; `answer` performs a step."""

    def __init__(self, copying=None):
        ids = SeededIds(0)
        admission = (*served_admission(ids.new_suffix), PodCountLimit(4))
        self.store = Store(ids, admission=admission, registry=API_SERVER, copying=copying)
        self.now = SECOND
        for one in (manifest("Namespace", "default"), manifest("Node", "n1"), ACCOUNT):
            self.store.create(one, self.now)

    def answer(self, step):
        what, name, user = step
        said = []
        self.now += SECOND // 2
        try:
            if what in EVENTS:
                EVENTS[what](self.store, self.now)
                return b""
            write = Write(
                track=track(POD, user or "me", "Update", "", self.now),
                manager=user or "me",
                user=User(name=user, groups=("system:authenticated",)) if user else None,
                warn=said.append,
                annotate=lambda *pair: said.append(pair),
            )
            return encode([self.store.create(PODS[what](name), self.now, write=write), said])
        except ApiError as refusal:
            return f"{refusal} {said}".encode()


STEPS = st.tuples(
    st.sampled_from([*PODS, *PODS, *EVENTS]),
    st.sampled_from(NAMES),
    st.sampled_from(("", "ann", "bob")),
)


@given(st.lists(STEPS, max_size=14))
def test_copies_equal_the_results_of_all_stages(steps):
    """Pods are created by different users, and other writes change the result of admission."""
    copying, plain = Server(PodCopying(own_annotation=OWN)), Server()
    for step in steps:
        assert copying.answer(step) == plain.answer(step)


@pytest.fixture
def copied(monkeypatch):
    """The results of `PodCopies.create`."""
    copied = []
    create = PodCopies.create

    def noted(*arguments):
        copied.append(create(*arguments))
        return copied[-1]

    monkeypatch.setattr(PodCopies, "create", noted)
    return copied


def test_second_pod_of_a_workload_is_a_copy(copied):
    """Otherwise the comparison above would prove nothing."""
    server = Server(PodCopying())
    for name in "abc":
        server.answer(("owned", name, ""))
    assert [one is not None for one in copied] == [False, True, True]
    server.answer(("limits", "", ""))
    server.answer(("owned", "d", ""))
    assert copied[-1] is None


def test_pods_with_the_same_spec_object_and_with_an_equal_one_are_copies(copied):
    server = Server(PodCopying())
    pods = [
        json.loads(server.answer((what, name, "")))[0]
        for what, name in (
            ("of a controller", "a"),
            ("of a controller", "b"),
            ("like that of a controller", "c"),
            ("of a revision", "d"),
        )
    ]
    assert [one is not None for one in copied] == [False, True, True, False]
    assert [one["spec"].get("hostNetwork", False) for one in pods] == [False, False, False, True]


def test_pods_with_their_own_values_of_one_annotation_are_copies(copied):
    server = Server(PodCopying(own_annotation=OWN))
    pods = [json.loads(server.answer(("of its own", name, "")))[0] for name in "ab"]
    assert [one is not None for one in copied] == [False, True]
    assert [one["metadata"]["annotations"][OWN] for one in pods] == ["for a", "for b"]


def test_pods_of_a_daemon_set_are_copies_for_their_own_nodes(copied):
    server = Server(PodCopying())
    pods = [json.loads(server.answer(("of a DaemonSet", name, "")))[0] for name in "abc"]
    assert [one is not None for one in copied] == [False, True, True]
    assert [one["spec"]["affinity"] for one in pods] == [
        pinned(f"node-{name}")["affinity"] for name in "abc"
    ]
    server.answer(("pinned to an invalid node", "d", ""))
    assert copied[-1] is None


def test_the_first_pods_are_not_copied(copied):
    server = Server(PodCopying(after=2))
    for name in "abcd":
        server.answer(("owned", name, ""))
    assert [one is not None for one in copied] == [False, True]


def test_copy_has_no_warning_about_the_name_of_the_first_pod():
    """A name with a dot causes a warning, because it is the pod's hostname."""
    copying, plain = Server(PodCopying(own_annotation=OWN)), Server()
    for name in ("a.b", "c", "d"):
        step = ("owned", name, "")
        assert copying.answer(step) == plain.answer(step)
