"""Gangs whose members have volumes or devices: all are prepared before any member is bound."""

from __future__ import annotations

import json

from fairlead.api.codec import as_json
from fairlead.apiserver.kind import POD, find_kind
from fairlead.apiserver.registry.deletion import Deletion
from fairlead.engine.batch.configuration_file import shipped_configuration
from fairlead.engine.compose import build_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import SilentReporter
from fairlead.engine.workloads.config import VolumesConfig
from fairlead.testing.builders import make_node
from fairlead.testing.device_builders import (
    make_claim_status,
    make_device_class,
    make_pod_resource_claims,
    make_resource_claim,
    make_slice,
)
from fairlead.testing.storage_builders import (
    make_claim,
    make_claim_volumes,
    make_storage_class,
    make_volume,
)
from fairlead.worlds.simulation.world import SimulatedWorld

START = seconds(1_767_225_600)
CLAIM = find_kind("resourceclaim")
STORAGE = {"StorageClass": "storage.k8s.io/v1", "DeviceClass": "resource.k8s.io/v1"}
DEVICES = ("ResourceClaim", "ResourceSlice")


def manifest(view):
    if isinstance(view, dict):
        return view
    kind = type(view).__name__
    version = STORAGE.get(kind, "resource.k8s.io/v1" if kind in DEVICES else "v1")
    return {"apiVersion": version, "kind": kind, **as_json(view)}


def gang(name, *specs, minimum=None):
    """Return a PodGroup, and a pod for each of `specs`."""
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": len(specs) if minimum is None else minimum},
    }
    return [group, *(pod(f"{name}-{i}", name, spec) for i, spec in enumerate(specs))]


def pod(name, group, spec):
    marks = {"scheduling.k8s.io/group-name": group}
    body = {"containers": [{"name": "c", "image": "i"}], "schedulerName": "fairlead", **spec}
    meta = {"name": name, "namespace": "default", "annotations": marks}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body}


class World(SimulatedWorld):
    """A cluster of nodes and the given objects."""

    def __init__(self, *objects, provision_s=0.0):
        self.log = []
        config = EngineConfig(
            start=START,
            batch=shipped_configuration("fairlead"),
            volumes=VolumesConfig(provision_delay=seconds(provision_s)),
        )
        engine = build_engine(config, SilentReporter())
        super().__init__(engine, start=START, command_log=self.log.append)
        self.load(map(manifest, objects))

    def after(self, duration_s):
        self.run(self.now + seconds(duration_s))
        return self

    def do(self, act):
        self.at(self.now, act)
        return self

    @property
    def placed(self):
        pods = self.store.list(POD, "default")
        found = {p["metadata"]["name"]: p["spec"].get("nodeName") for p in pods}
        return {name: node for name, node in found.items() if node}

    @property
    def claims(self):
        return self.store.list(CLAIM, "default")

    def bound_at_s(self):
        """Return the time in seconds at which each pod was bound, by name."""
        commands = map(json.loads, self.log)
        return {
            c["pod"]["name"]: (c["t_ns"] - START) / 1e9 for c in commands if c["command"] == "Bind"
        }


def with_devices(nodes):
    views = [make_node(name) for name in nodes]
    return [*views, *map(make_slice, nodes), make_device_class()]


def test_each_member_gets_its_own_device():
    claims = [make_resource_claim(f"c{i}") for i in range(2)]
    world = World(
        *with_devices("ab"),
        *claims,
        *gang("g", make_pod_resource_claims("c0"), make_pod_resource_claims("c1")),
    ).after(60)
    assert sorted(world.placed.values()) == ["a", "b"]


def test_a_gang_with_a_device_too_few_does_not_start_at_all():
    claims = [make_resource_claim(f"c{i}") for i in range(3)]
    specs = [make_pod_resource_claims(f"c{i}") for i in range(3)]
    world = World(*with_devices("ab"), *claims, *gang("g", *specs)).after(60)
    assert world.placed == {}
    assert all("status" not in c or "allocation" not in c["status"] for c in world.claims)
    for view in (make_node("c"), make_slice("c")):
        world.do(lambda store, now, view=view: store.create(manifest(view), now))
    assert sorted(world.after(60).placed) == ["g-0", "g-1", "g-2"]


def test_no_member_is_bound_before_all_volumes_are_bound():
    volume_claims = [make_claim(f"v{i}") for i in range(2)]
    specs = [make_claim_volumes("v0"), make_claim_volumes("v1"), {}]
    objects = [make_node("a"), make_storage_class(), *volume_claims, *gang("g", *specs)]
    world = World(*objects, provision_s=5).after(60)
    assert sorted(world.placed) == ["g-0", "g-1", "g-2"]
    times = set(world.bound_at_s().values())
    assert len(times) == 1
    assert times.pop() >= 5


def test_a_required_member_deleted_during_provisioning_fails_the_gang():
    specs = [make_claim_volumes("v0"), {}, {}]
    objects = [make_node("a"), make_storage_class(), make_claim("v0"), *gang("g", *specs)]
    world = World(*objects, provision_s=30).after(5)
    assert world.placed == {}
    world.do(
        lambda store, now: store.delete(POD, "default", "g-1", now, Deletion(grace_period_s=0))
    )
    assert world.after(120).placed == {}
    world.do(lambda store, now: store.create(pod("g-1", "g", {}), now))
    assert sorted(world.after(120).placed) == ["g-0", "g-1", "g-2"]


def test_a_surplus_member_deleted_during_provisioning_does_not_fail_the_gang():
    specs = [make_claim_volumes("v0"), {}, {}]
    gangs = gang("g", *specs, minimum=2)
    world = World(make_node("a"), make_storage_class(), make_claim("v0"), *gangs, provision_s=30)
    world.after(5).do(
        lambda store, now: store.delete(POD, "default", "g-1", now, Deletion(grace_period_s=0))
    )
    assert sorted(world.after(120).placed) == ["g-0", "g-2"]


def test_members_of_a_gang_get_different_volumes():
    """Two claims and two volumes, each of which is accessible from one node."""
    volumes = [
        make_volume("p0", reach={"kubernetes.io/hostname": ["a"]}),
        make_volume("p1", reach={"kubernetes.io/hostname": ["b"]}),
    ]
    nodes = [make_node(n, labels={"kubernetes.io/hostname": n}) for n in "ab"]
    static = make_storage_class(provisioner="kubernetes.io/no-provisioner")
    claims = [make_claim(f"v{i}") for i in range(2)]
    specs = [make_claim_volumes("v0"), make_claim_volumes("v1")]
    world = World(*nodes, static, *volumes, *claims, *gang("g", *specs)).after(60)
    assert sorted(world.placed.values()) == ["a", "b"]


def test_a_gang_may_share_a_claim_that_is_allocated():
    claim = make_resource_claim("c", status=make_claim_status("a", "gpu-0"))
    world = World(
        *with_devices("ab"), claim, *gang("g", *[make_pod_resource_claims("c")] * 3)
    ).after(60)
    assert world.placed == {"g-0": "a", "g-1": "a", "g-2": "a"}


def test_a_gang_cannot_share_a_claim_that_is_not_allocated():
    """As for single pods, devices are allocated for one pod at a time."""
    claim = make_resource_claim("c")
    world = World(
        *with_devices("ab"), claim, *gang("g", *[make_pod_resource_claims("c")] * 2)
    ).after(60)
    assert world.placed == {}
    conditions = world.store.get(POD, "default", "g-1")["status"]["conditions"]
    assert "c is in the process of being allocated" in conditions[0]["message"]


def test_members_whose_volumes_time_out_together_are_placed_again():
    claims = [make_claim(f"v{i}") for i in range(2)]
    members = gang("g", make_claim_volumes("v0"), make_claim_volumes("v1"))
    objects = [make_node("a"), make_storage_class(), *claims, *members]
    world = World(*objects, provision_s=900).after(700)  # the timeout is 600 s
    assert world.placed == {}
    assert sorted(world.after(300).placed) == ["g-0", "g-1"]
