"""No volume is bound to two claims, and no pod runs without access to its volumes.

Random pods with claims that are bound immediately, provisioned on the pod's node, or local to a
node run for a random minute in the simulated world, with and without request latencies, while every
version of every volume, claim and pod is checked.
"""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.api.codec import decode
from fairlead.api.nodes.node_selector import node_selector_matches
from fairlead.api.pods.facts import is_terminal
from fairlead.api.pods.volumes import all_claims, named_claims
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import POD, find_kind
from fairlead.engine.compose import build_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import SilentReporter
from fairlead.testing.random_cluster import Chance
from fairlead.worlds.simulation.world import Latency, SimulatedWorld

START = seconds(1_767_225_600)
CLAIM = find_kind("persistentvolumeclaim")
VOLUME = find_kind("persistentvolume")
NODE = find_kind("node")
NODES = {"a": "z1", "b": "z1", "c": "z2"}
CLAIMS = tuple(f"c{i}" for i in range(9))
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
BOUND = "pv.kubernetes.io/bind-completed"
ALONE = "ReadWriteOncePod"


def node_manifest(name):
    allocatable = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOST: name, ZONE: NODES[name]}},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }


def class_manifest(name, provisioner, *, waits):
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
    }


CLASSES = (
    class_manifest("now", "csi.example.com", waits=False),
    class_manifest("later", "csi.example.com", waits=True),
    class_manifest("local", "kubernetes.io/no-provisioner", waits=True),
)


def volume_manifest(number, node=""):
    """Return a volume that is local to `node`.

    Without `node`, all nodes reach the volume, and its class binds immediately.
    """
    spec = {
        "storageClassName": "local" if node else "now",
        "capacity": {"storage": f"{1 + number % 3}Gi"},
        "accessModes": [ALONE if number % 4 == 3 else "ReadWriteOnce"],  # as often as in claims
    }
    if node:
        term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [node]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    metadata = {"name": f"{node or 'any'}-{number}"}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}


def claim_spec(chance):
    return {
        "storageClassName": chance.of(("now", "later", "local", "local")),
        "accessModes": [ALONE if chance.one_in(4) else "ReadWriteOnce"],
        "resources": {"requests": {"storage": f"{1 + chance.below(3)}Gi"}},
    }


def claim_manifest(chance, name):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": claim_spec(chance),
    }


def pod_manifest(chance, number):
    volumes = [
        {"name": name, "persistentVolumeClaim": {"claimName": name}}
        for name in chance.some(CLAIMS, 2)
    ]
    if not volumes or chance.one_in(4):
        template = {"spec": claim_spec(chance)}
        volumes.append({"name": "own", "ephemeral": {"volumeClaimTemplate": template}})
    runs = {"fairlead.dev/run-duration": "5s"} if chance.one_in(2) else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{number}", "namespace": "default", "annotations": runs},
        "spec": {
            "volumes": volumes,
            "terminationGracePeriodSeconds": chance.below(3),
            "containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
        },
    }


class Minute:
    """A world with storage; `seed` determines its script."""

    def __init__(self, seed, latency):
        self.chance = chance = Chance(seed)
        self.log = []
        self.owner_of = {}
        self.placed = set()
        engine = build_engine(EngineConfig(seed=seed, start=START), SilentReporter())
        self.world = SimulatedWorld(
            engine, start=START, seed=seed, latency=latency, command_log=self.log.append
        )
        self.world.store.subscribe(lambda _change: self.audit())
        self.world.load(
            [
                *map(node_manifest, NODES),
                *CLASSES,
                *(volume_manifest(i, chance.of(("", *NODES))) for i in range(8)),
                *(claim_manifest(chance, name) for name in CLAIMS[:6]),
            ]
        )
        for number in range(40):  # in bursts
            self.world.at(START + seconds(5 * chance.below(8)), self.act(number))

    def act(self, number):
        chance = self.chance
        pod, claim = pod_manifest(chance, number), claim_manifest(chance, chance.of(CLAIMS))
        what, gone = chance.of(("pod", "pod", "pod", "claim", "end", "leave")), chance.below(40)

        def happen(store, now):
            with suppress(ApiError):  # the object may exist already, or not exist
                match what:
                    case "pod":
                        store.create(pod, now)
                    case "claim":
                        store.create(claim, now)
                    case "end":
                        store.delete(POD, "default", f"p{gone}", now)
                    case "leave" if claim["metadata"]["name"] not in self.named():
                        store.delete(CLAIM, "default", claim["metadata"]["name"], now)

        return happen

    # --- what is there ---------------------------------------------------------------------

    def all_of(self, kind, namespace=""):
        return [decode(one) for one in self.world.store.list(kind, namespace)]

    def named(self):
        return {name for pod in self.all_of(POD, "default") for name in named_claims(pod)}

    def audit(self):
        volumes = {one.key: one for one in self.all_of(VOLUME)}
        claims = {one.metadata.name: one for one in self.all_of(CLAIM, "default")}
        running = [
            pod
            for pod in self.all_of(POD, "default")
            if pod.spec.node_name and not is_terminal(pod)
        ]
        self.audit_volumes(volumes, claims)
        self.audit_users(claims, running)
        for pod in running:
            self.audit_reach(pod, volumes, claims)
            self.placed.add(pod.metadata.name)

    def audit_volumes(self, volumes, claims):
        """A volume keeps its first claim, and a bound claim is the claim of its volume."""
        for volume in volumes.values():
            if volume.spec.claim_ref is not None:
                uid = volume.spec.claim_ref.uid
                assert self.owner_of.setdefault(volume.metadata.uid, uid) == uid
        for claim in claims.values():
            if BOUND in claim.metadata.annotations:
                volume = volumes[claim.spec.volume_name]
                assert volume.spec.claim_ref.uid == claim.metadata.uid

    def audit_users(self, claims, running):
        """Check that a ReadWriteOncePod claim has one user."""
        for name, claim in claims.items():
            if ALONE in claim.spec.access_modes:
                assert sum(name in named_claims(pod) for pod in running) <= 1, name

    def audit_reach(self, pod, volumes, claims):
        """Check that the claims of a placed pod are bound to volumes that its node reaches."""
        node = decode(self.world.store.get(NODE, "", pod.spec.node_name))
        for name in all_claims(pod):
            volume = volumes[claims[name].spec.volume_name]
            affinity = volume.spec.node_affinity
            if affinity is not None:
                assert node_selector_matches(affinity.required, node.metadata.labels, "")

    def run(self):
        self.world.run(START + seconds(60))
        return self


SLOW = Latency(bind=seconds(0.4), patch=seconds(0.3))


@pytest.mark.parametrize("latency", [None, SLOW], ids=["at once", "slow requests"])
@settings(max_examples=15)
@given(seed=st.integers(0, 1 << 32))
def test_volumes_are_bound_once_and_accessible_to_their_pods(latency, seed):
    """This holds at every instant, and ephemeral claims do not outlive their pods."""
    minute = Minute(seed, latency).run()
    alive = {pod.metadata.uid for pod in minute.all_of(POD, "default")}
    for claim in minute.all_of(CLAIM, "default"):
        assert {owner.uid for owner in claim.metadata.owner_references} <= alive


def test_the_random_minutes_have_all_kinds_of_events():
    """Otherwise the other tests would prove nothing."""
    minutes = [Minute(seed, SLOW).run() for seed in range(4)]
    assert sum(len(minute.placed) for minute in minutes) > 20
    assert sum(len(minute.owner_of) for minute in minutes) > 20


def test_equal_seeds_give_equal_writes():
    """This includes the names of volumes."""
    assert Minute(7, SLOW).run().log == Minute(7, SLOW).run().log
