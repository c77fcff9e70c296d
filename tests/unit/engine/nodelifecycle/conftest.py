"""Short builders for nodes, pods and leases, and a simulated cluster that contains them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.lease import NODE_LEASES, RENEWED_EVERY
from fairlead.api.objects import Lease, Node, Pod
from fairlead.api.timestamp import format_micro_time, format_timestamp
from fairlead.apiserver.kind import NODE, POD, find_kind
from fairlead.apiserver.registry.deletion import Deletion
from fairlead.engine.core.command import RecordEvent
from fairlead.engine.core.instant import seconds
from fairlead.engine.engine import Engine
from fairlead.engine.nodelifecycle.compose import node_controllers
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.state.cluster import Cluster
from fairlead.worlds.simulation.world import SimulatedWorld

START = seconds(1_900_000_000)
LEASE = find_kind("lease")
BOTH = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def stamp(after_s):
    return format_timestamp(START + seconds(after_s))


def node_json(
    name="n1",
    *,
    zone="a",
    ready="True",
    heartbeat_s=-5,
    moved_s=-3_000,
    taints=(),
    spec=(),
    labels=(),
):
    """Return a Node; `ready` None means that the kubelet has posted no status.

    Other values of `ready` are the status of Ready only.
    """
    statuses = {"Ready": ready, "MemoryPressure": "False"} if ready is not None else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "creationTimestamp": stamp(-3_600),
            "labels": {"topology.kubernetes.io/zone": zone} | dict(labels),
        },
        "spec": {"taints": list(taints)} | dict(spec),
        "status": {
            "capacity": {"cpu": "4", "pods": "10"},
            "conditions": [
                {
                    "type": kind,
                    "status": status,
                    "lastHeartbeatTime": stamp(heartbeat_s),
                    "lastTransitionTime": stamp(moved_s),
                }
                for kind, status in statuses.items()
            ],
        },
    }


def lease_json(name="n1", *, renewed_s=-3, every=""):
    annotations = {RENEWED_EVERY: every} if every else {}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": NODE_LEASES, "name": name, "annotations": annotations},
        "spec": {"renewTime": format_micro_time(START + seconds(renewed_s))},
    }


def pod_json(name="p1", *, node="n1", tolerations=(), phase="Running", meta=(), status=(), spec=()):
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": stamp(-100)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": "default",
            "name": name,
            "uid": f"uid-{name}",
            "creationTimestamp": stamp(-200),
        }
        | dict(meta),
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "tolerations": list(tolerations),
        }
        | ({"nodeName": node} if node else {})
        | dict(spec),
        "status": {"phase": phase, "conditions": [ready]} | dict(status),
    }


def tolerate(limit_s=None, keys=BOTH, **others):
    """Return tolerations of NoExecute taints, forever or for `limit_s`."""
    limit = {} if limit_s is None else {"tolerationSeconds": limit_s}
    return [
        {"key": key, "operator": "Exists", "effect": "NoExecute"} | limit | others for key in keys
    ]


class Simulation:
    """A simulated world with the node controllers; times are seconds since its start."""

    def __init__(self, objects, *, first=(), **options):
        self.records = []
        config = NodeLifecycleConfig(**{"pass_cost": 0} | options)
        self.controllers = node_controllers(config, self, START)
        self.world = SimulatedWorld(Engine(Cluster(), [*first, *self.controllers]), start=START)
        self.world.load(objects)

    def report(self, record):
        self.records.append(record)

    def run(self, until_s):
        self.world.run(START + seconds(until_s))
        return self

    def at(self, after_s, act, *args, **options):
        """Schedule `act(store, ..., now)`; see the functions below."""
        self.world.at(
            START + seconds(after_s), lambda store, now: act(store, *args, now=now, **options)
        )

    def node(self, name="n1"):
        return self.world.store.get(NODE, "", name)

    def pod(self, name="p1"):
        return self.world.store.find(POD, "default", name)

    def ready(self, name="n1"):
        return self.condition("Ready", name)["status"]

    def condition(self, kind, name="n1"):
        conditions = self.node(name)["status"].get("conditions", ())
        return next(one for one in conditions if one["type"] == kind)

    def taints(self, name="n1", effect="NoExecute"):
        taints = self.node(name)["spec"].get("taints", ())
        return [one["key"].rpartition("/")[2] for one in taints if one["effect"] == effect]

    def events(self, reason=""):
        """Return (seconds, kind/name, note) of the events, of one reason or of all."""
        return [
            ((one.at - START) / seconds(1), one.event.regarding.name, one.event.note)
            for one in self.world.events.to_list()
            if isinstance(one.event, RecordEvent) and reason in ("", one.event.reason)
        ]

    def reported(self, kind):
        return [record for record in self.records if isinstance(record, kind)]


# --- what happens ------------------------------------------------------------------------------


def stop(store, name="n1", *, now):
    """The kubelet stops; its lease was last renewed at `now`."""
    renewed = {"metadata": {"annotations": None}, "spec": {"renewTime": format_micro_time(now)}}
    store.patch_as_is(LEASE, NODE_LEASES, name, renewed, now)


def post(store, name="n1", status="True", *, now):
    """The kubelet posts the condition Ready with this status."""
    condition = {"type": "Ready", "status": status, "lastHeartbeatTime": format_timestamp(now)}
    store.patch_status(NODE, "", name, {}, now, conditions=[condition])


def renew(store, name="n1", every="10s", *, now):
    """The kubelet renews its lease regularly again."""
    renewed = {
        "metadata": {"annotations": {RENEWED_EVERY: every}},
        "spec": {"renewTime": format_micro_time(now)},
    }
    store.patch_as_is(LEASE, NODE_LEASES, name, renewed, now)


def label(store, name="n1", *, now):
    """A client labels the node."""
    store.patch_as_is(NODE, "", name, {"metadata": {"labels": {"seen": "yes"}}}, now)


def put(store, manifest, *, now):
    store.put_as_is(manifest, now)


def delete(store, kind, name, grace_s=None, *, now):
    namespace = "" if kind is NODE else "default"
    store.delete(kind, namespace, name, now, Deletion(grace_period_s=grace_s))


def as_view(view, form):
    """Return a builder of views that uses a builder of JSON."""
    return lambda *args, **options: decode_as(view, form(*args, **options))


@pytest.fixture(scope="session")
def given():
    """All of the above functions, as one namespace."""
    return SimpleNamespace(
        START=START,
        Simulation=Simulation,
        at=lambda after_s: START + seconds(after_s),
        delete=delete,
        label=label,
        lease=as_view(Lease, lease_json),
        lease_json=lease_json,
        node=as_view(Node, node_json),
        node_json=node_json,
        pod=as_view(Pod, pod_json),
        pod_json=pod_json,
        post=post,
        put=put,
        renew=renew,
        stamp=stamp,
        stop=stop,
        tolerate=tolerate,
    )
