"""Pods that are copies of earlier pods are the pods that all stages would have made."""

from __future__ import annotations

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
from fairlead.apiserver.registry.store import Store
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
    "with a message": lambda name: pod(name, annotations={"a": "\x7f0 web"}),
}
NAMES = ("a", "b", "c", "d", "with.dot", "Wrong_")
LIMIT = {"type": "Container", "default": {"memory": "1Gi"}}
QUOTA = {"spec": {"hard": {"pods": "2"}}, "status": {"hard": {"pods": "2"}, "used": {"pods": "0"}}}
# What else happens, and changes what admission does.
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
    """A store as a local cluster has it, which writes down what it answers."""

    def __init__(self, *, copies_pods):
        ids = SeededIds(0)
        admission = (*served_admission(ids.new_suffix), PodCountLimit(4))
        self.store = Store(ids, admission=admission, registry=API_SERVER, copies_pods=copies_pods)
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
def test_copies_are_what_all_stages_make(steps):
    """Whatever is created, by whom, and whatever admission reads meanwhile."""
    copying, plain = Server(copies_pods=True), Server(copies_pods=False)
    for step in steps:
        assert copying.answer(step) == plain.answer(step)


def test_second_pod_of_a_workload_is_a_copy(monkeypatch):
    """Otherwise the comparison above would prove nothing."""
    copied = []
    create = PodCopies.create

    def noted(*arguments):
        copied.append(create(*arguments))
        return copied[-1]

    monkeypatch.setattr(PodCopies, "create", noted)
    server = Server(copies_pods=True)
    for name in "abc":
        server.answer(("owned", name, ""))
    assert [one is not None for one in copied] == [False, True, True]
    server.answer(("limits", "", ""))
    server.answer(("owned", "d", ""))
    assert copied[-1] is None


def test_copy_has_no_warning_about_the_name_of_the_first_pod():
    """A name with a dot causes a warning, because it is the pod's hostname."""
    copying, plain = Server(copies_pods=True), Server(copies_pods=False)
    for name in ("a.b", "c", "d"):
        step = ("owned", name, "")
        assert copying.answer(step) == plain.answer(step)
