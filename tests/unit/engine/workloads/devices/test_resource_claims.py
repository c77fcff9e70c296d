"""ResourceClaims: created from templates, named in pod statuses, deallocated when pods end."""

from __future__ import annotations

from typing import Final

import pytest

from fairlead.api.codec import decode
from fairlead.apiserver.kind import POD, find_kind
from fairlead.apiserver.registry.deletion import Deletion
from fairlead.engine.core.command import CreateObject, DeleteObject, PatchObject, PatchStatus
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import (
    CommandFailed,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
)
from fairlead.engine.engine import Engine
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.engine.workloads.devices.resource_claims import CLAIM_REFUSED, ResourceClaims
from fairlead.testing.device_builders import make_pod_resource_claims
from fairlead.worlds.simulation.world import SimulatedWorld

START: Final = seconds(1_767_225_600)
CLAIM = find_kind("resourceclaim")
MADE_FOR = "resource.kubernetes.io/pod-claim-name"
FINALIZER = "resource.kubernetes.io/delete-protection"
SPEC = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}


def template(name="t"):
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {
            "metadata": {"labels": {"app": "x"}, "annotations": {"note": "n"}},
            "spec": SPEC,
        },
    }


def pod(name, spec=None, *, node="", phase="", uid=""):
    whole = {"containers": [{"name": "c", "image": "i"}], **(spec or {})}
    if node:
        whole["nodeName"] = node
    metadata = {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}"}
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole}
    return made | ({"status": {"phase": phase}} if phase else {})


def claim(name, *reserved_for, finalizers=(FINALIZER,), **metadata):
    """An allocated claim that is reserved for pods of these names."""
    results = [{"request": "r", "driver": "d", "pool": "p", "device": "gpu-0"}]
    consumers = [{"resource": "pods", "name": one, "uid": f"uid-{one}"} for one in reserved_for]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "finalizers": list(finalizers),
            **metadata,
        },
        "spec": SPEC,
        "status": {"allocation": {"devices": {"results": results}}, "reservedFor": consumers},
    }


class World(SimulatedWorld):
    """A world that runs only this controller."""

    def __init__(self, *manifests):
        super().__init__(
            Engine(Cluster(), (ResourceClaims(WorkloadsConfig()),)), start=START, seed=1
        )
        self.load(manifests)
        self.settle()

    def settle(self):
        self.run(self.now)
        return self

    def do(self, act):
        self.at(self.now, act)
        return self.settle()

    def create(self, manifest):
        return self.do(lambda store, now: store.create(manifest, now))

    def delete(self, kind, name, grace=None):
        return self.do(
            lambda store, now: store.delete(kind, "ns", name, now, Deletion(grace_period_s=grace))
        )

    def end(self, name, phase="Succeeded"):
        return self.do(
            lambda store, now: store.patch_status(POD, "ns", name, {"phase": phase}, now)
        )

    def claims(self):
        return {one["metadata"]["name"]: one for one in self.store.list(CLAIM, "ns")}

    def pod(self, name):
        return self.store.get(POD, "ns", name)

    def users(self, name):
        return [one["name"] for one in self.claims()[name]["status"].get("reservedFor", [])]


# --- claims for pods -------------------------------------------------------------------------


def test_a_claim_is_created_from_a_template_and_named_in_the_pod_status():
    """The claim is owned by the pod, and its annotation names the pod's claim."""
    world = World(template()).create(pod("p", make_pod_resource_claims(templates=["t"])))
    ((name, made),) = world.claims().items()
    assert name.startswith("p-t0-")
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Pod", "p", True)
    assert owner["uid"] == world.pod("p")["metadata"]["uid"]
    assert made["metadata"]["annotations"] == {"note": "n", MADE_FOR: "t0"}
    assert made["metadata"]["labels"] == {"app": "x"}
    assert made["spec"] == SPEC
    statuses = world.pod("p")["status"]["resourceClaimStatuses"]
    assert statuses == [{"name": "t0", "resourceClaimName": name}]


def test_each_template_reference_of_a_pod_creates_a_claim():
    """Two references to the same template create two claims."""
    world = World(template()).create(pod("p", make_pod_resource_claims(templates=["t", "t"])))
    statuses = world.pod("p")["status"]["resourceClaimStatuses"]
    assert [one["name"] for one in statuses] == ["t0", "t1"]
    assert sorted(one["resourceClaimName"] for one in statuses) == sorted(world.claims())


def test_a_pod_waits_for_its_template():
    """The claim is created when the template exists."""
    world = World().create(pod("p", make_pod_resource_claims(templates=["t"])))
    assert not world.claims()
    assert len(world.create(template()).claims()) == 1


def test_no_claims_are_created_for_pods_that_name_claims():
    """Pods without claims and finished pods get no claims either."""
    ended = pod("e", make_pod_resource_claims(templates=["t"]), node="a", phase="Succeeded")
    world = (
        World(template(), ended).create(pod("p", make_pod_resource_claims("c"))).create(pod("q"))
    )
    assert not world.claims()


def test_a_loaded_pod_gets_its_missing_claims_and_keeps_the_others():
    """Existing claims are only added to the status of the pod."""
    made = claim(
        "mine",
        annotations={MADE_FOR: "t0"},
        ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p",
                          "controller": True}],
    )  # fmt: skip
    world = World(made, pod("p", make_pod_resource_claims(templates=["t", "t"])), template())
    claim_names = {
        o["name"]: o["resourceClaimName"] for o in world.pod("p")["status"]["resourceClaimStatuses"]
    }
    assert claim_names["t0"] == "mine"
    assert sorted(claim_names.values()) == sorted(world.claims())


def test_a_refused_claim_is_retried_later():
    """It is retried when the pod changes."""
    controller = ResourceClaims(WorkloadsConfig())
    waiting = ObjectChanged(decode(pod("p", make_pod_resource_claims(templates=["t"]))))
    controller.handle(ObjectChanged(decode(template())), START)
    (command,) = controller.handle(waiting, START)
    assert isinstance(command, CreateObject)
    assert controller.handle(waiting, START) == []
    controller.handle(CommandFailed(command, FailureReason.FORBIDDEN, "no"), START)
    assert len(controller.handle(waiting, START)) == 1


def test_the_backoff_of_a_refused_claim_doubles():
    """A quota that refuses the claim may have room later, and then the pod does not change."""
    controller = ResourceClaims(WorkloadsConfig(retry_initial=10, retry_max=30))
    controller.handle(ObjectChanged(decode(template())), START)
    waiting = decode(pod("p", make_pod_resource_claims(templates=["t"])))
    [command] = controller.handle(ObjectChanged(waiting), START)
    now = START
    for backoff in (10, 20, 30, 30):
        failed = CommandFailed(command, FailureReason.FORBIDDEN, "quota")
        [event] = controller.handle(failed, now)
        assert (event.reason, event.note) == (CLAIM_REFUSED, "PodResourceClaim t0: quota")
        assert controller.next_deadline() == now + backoff
        assert controller.handle_deadline(now + backoff - 1) == []
        now += backoff
        [command] = controller.handle_deadline(now)
        assert isinstance(command, CreateObject)
    controller.handle(CommandFailed(command, FailureReason.FORBIDDEN, "quota"), now)
    controller.handle(ObjectDeleted(waiting), now)
    assert controller.handle_deadline(now + 30) == []
    assert controller.next_deadline() is None


# --- giving back -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "end",
    [
        lambda world: world.end("p"),
        lambda world: world.end("p", "Failed"),
        lambda world: world.delete(POD, "p", grace=0),
    ],
)
def test_a_claim_is_deallocated_after_its_last_pod_has_ended(end):
    """The claim itself stays, so that another pod can use it."""
    world = World(
        claim("c", "p"), pod("p", make_pod_resource_claims("c"), node="a", phase="Running")
    )
    assert world.users("c") == ["p"]
    end(world)
    left = world.claims()["c"]
    assert "allocation" not in left.get("status", {})
    assert "reservedFor" not in left.get("status", {})
    assert FINALIZER not in left["metadata"].get("finalizers", [])


def test_other_pods_keep_a_shared_allocation():
    """Only the ended pod is removed from reservedFor."""
    pods = [
        pod(name, make_pod_resource_claims("c"), node="a", phase="Running") for name in ("p", "q")
    ]
    world = World(claim("c", "p", "q"), *pods).end("p")
    assert world.users("c") == ["q"]
    assert "allocation" in world.claims()["c"]["status"]


def test_a_terminating_pod_uses_its_devices_until_it_is_deleted():
    """This holds if the pod has a node; a pod without a node will never use the devices."""
    world = World(
        claim("c", "p"), pod("p", make_pod_resource_claims("c"), node="a", phase="Running")
    )
    assert world.delete(POD, "p", grace=30).users("c") == ["p"]


def test_consumers_missing_in_a_dump_are_removed():
    """A pod that the dump does not contain is not a user."""
    world = World(
        claim("c", "p", "gone"), pod("p", make_pod_resource_claims("c"), node="a", phase="Running")
    )
    assert world.users("c") == ["p"]


def test_a_generated_claim_is_deleted_with_its_pod():
    """It is also deleted when its pod has finished."""
    for end in (lambda w: w.end("p"), lambda w: w.delete(POD, "p", grace=0)):
        world = World(template()).create(pod("p", make_pod_resource_claims(templates=["t"])))
        assert world.claims()
        end(world)
        assert not world.claims()


def test_a_terminating_claim_is_removed_after_its_deallocation():
    """It is not removed before."""
    world = World(
        claim("c", "p"), pod("p", make_pod_resource_claims("c"), node="a", phase="Running")
    )
    assert "c" in world.delete(CLAIM, "c").claims()
    assert not world.end("p").claims()


def test_a_terminating_unused_claim_is_removed_at_once():
    """Its allocation is stale."""
    assert not World(claim("c")).delete(CLAIM, "c").claims()


def test_consumers_of_other_kinds_are_kept():
    """Another controller manages them."""
    foreign = claim("c")
    foreign["status"]["reservedFor"] = [
        {"apiGroup": "example.com", "resource": "jobs", "name": "j", "uid": "u"}
    ]
    assert World(foreign).users("c") == ["j"]


def test_a_claim_is_written_once_per_version():
    """The claim is deallocated first; the finalizer is removed after the API shows this."""
    controller = ResourceClaims(WorkloadsConfig())
    changed = claim("c", "gone", resourceVersion="5")
    commands = controller.handle(ObjectChanged(decode(changed)), START)
    assert [type(one) for one in commands] == [PatchStatus]
    assert commands[0].resource_version == "5"
    assert controller.handle(ObjectChanged(decode(changed)), START) == []
    free = claim("c", resourceVersion="6") | {"status": {}}
    (unprotect,) = controller.handle(ObjectChanged(decode(free)), START)
    assert isinstance(unprotect, PatchObject)
    assert unprotect.patch == {"metadata": {"finalizers": None}}
    assert controller.handle(ObjectChanged(decode(free)), START) == []


def test_a_refused_deletion_is_retried():
    """It is retried with the next version of the claim."""
    controller = ResourceClaims(WorkloadsConfig())
    owner = {"kind": "Pod", "uid": "gone", "controller": True}
    orphan = claim("c", annotations={MADE_FOR: "t0"}, ownerReferences=[owner], finalizers=())
    seen = ObjectChanged(decode(orphan))
    (command,) = controller.handle(seen, START)
    assert isinstance(command, DeleteObject)
    assert controller.handle(seen, START) == []
    controller.handle(CommandFailed(command, FailureReason.CONFLICT, "no"), START)
    assert len(controller.handle(seen, START)) == 1
