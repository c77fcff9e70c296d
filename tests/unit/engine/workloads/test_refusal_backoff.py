"""Writes that are refused forever are repeated with the backoff of upstream's controllers."""

from __future__ import annotations

from typing import Final

import pytest

from fairlead.engine.core.command import CreateObject, DeleteObject, PatchObject
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import FailureReason
from fairlead.engine.workloads.adoption import Adoption
from fairlead.engine.workloads.config import JOB_RETRY_INITIAL, JOB_RETRY_MAX, VolumesConfig
from fairlead.engine.workloads.controller import Workloads
from fairlead.engine.workloads.deletion.in_use_protection import InUseProtection
from fairlead.engine.workloads.environment import served_environment
from fairlead.engine.workloads.job.tracking_finalizer import JobOrphans
from fairlead.engine.workloads.job.ttl_after_finished import TtlAfterFinished
from fairlead.engine.workloads.refusal_backoff import RefusalBackoff
from fairlead.engine.workloads.volumes.controller import Volumes
from fairlead.engine.workloads.volumes.external_provisioner import ExternalProvisioner
from fairlead.engine.workloads.volumes.external_resizer import ExternalResizer

HOUR: Final = seconds(3600)
DEFAULT: Final = 21  # tries in an hour: delays of 5 ms, 10 ms, ..., 655.36 s, 1000 s, 1000 s
OF_JOBS: Final = 65  # 1 s, 2 s, ..., 32 s, 60 s, 60 s, ...
TRACKING: Final = "batch.kubernetes.io/job-tracking"


@pytest.mark.parametrize(
    ("backoff", "tries"),
    [(RefusalBackoff(), DEFAULT), (RefusalBackoff(JOB_RETRY_INITIAL, JOB_RETRY_MAX), OF_JOBS)],
    ids=["default", "Jobs"],
)
def test_the_delays_double_up_to_the_maximum(backoff, tries):
    now, count = 0, 0
    while now < HOUR:
        now, count = backoff.next_try("a", now), count + 1
    assert count == tries
    backoff.reset("a")
    assert backoff.next_try("a", 0) == backoff.initial


class Refusal:
    """Refuses all commands of a class for objects of a kind, and counts them."""

    def __init__(self, command, kind):
        self._command, self._kind = command, kind
        self.tries = 0

    def __call__(self, command):
        if not isinstance(command, self._command) or command.target.kind != self._kind:
            return None
        self.tries += 1
        return FailureReason.FORBIDDEN


def claim(**more):
    meta = {"name": "c", "namespace": "ns", "uid": "u", **more.pop("metadata", {})}
    spec = {"storageClassName": "fast", "resources": {"requests": {"storage": "2Gi"}}}
    return {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta,
        "spec": {**spec, **more.pop("spec", {})}, **more,
    }  # fmt: skip


CLASS: Final = {
    "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"},
    "provisioner": "csi.x", "volumeBindingMode": "Immediate",
}  # fmt: skip


def test_an_adoption_is_repeated_by_the_controller_of_the_owner(new_world, build):
    refusal = Refusal(PatchObject, "Pod")
    world = new_world(Adoption(), refuse=refusal)
    world.load(build.pod("lonely"), build.owned("ReplicaSet", "web", 1, uid="rs"))
    world.run(HOUR)
    assert refusal.tries == DEFAULT


def test_an_adoption_by_a_job_is_repeated_by_its_controller(new_world, build):
    refusal = Refusal(PatchObject, "Pod")
    world = new_world(Adoption(), refuse=refusal)
    job = build.owned("Job", "sum", uid="job", version="batch/v1", manualSelector=True)
    world.load(build.pod("lonely"), job)
    world.run(HOUR)
    assert refusal.tries == OF_JOBS


def test_the_release_of_a_pod_without_a_job_is_repeated(new_world, build):
    refusal = Refusal(PatchObject, "Pod")
    world = new_world(JobOrphans(), refuse=refusal)
    owner, meta = ("Job", "sum", "job"), {"finalizers": [TRACKING]}
    world.load(build.pod("sum-a", owner, meta=meta))
    world.run(HOUR)
    assert refusal.tries == OF_JOBS


def test_the_release_of_a_counted_pod_is_repeated(new_world, build):
    refusal = Refusal(PatchObject, "Pod")
    controller = Workloads(environment=served_environment())
    world = new_world(controller, place=lambda pod: "n1", runs=True, refuse=refusal).load()
    job = build.owned("Job", "sum", uid="job", version="batch/v1", selector=None, completions=1)
    world.create(job | {"status": {}})
    [name] = world.pods()
    world.patch_status("Pod", name, {"phase": "Succeeded"})
    world.run(HOUR)
    assert refusal.tries == OF_JOBS


def test_the_deletion_of_a_finished_job_is_repeated(new_world, build):
    refusal = Refusal(DeleteObject, "Job")
    world = new_world(TtlAfterFinished(), refuse=refusal)
    job = build.owned("Job", "sum", uid="job", version="batch/v1", ttlSecondsAfterFinished=0)
    ended = {"type": "Complete", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z"}
    world.load(job | {"status": {"conditions": [ended]}})
    world.run(HOUR)
    assert refusal.tries == DEFAULT


def test_the_end_of_the_protection_of_a_claim_is_repeated(new_world):
    refusal = Refusal(PatchObject, "PersistentVolumeClaim")
    world = new_world(InUseProtection(), refuse=refusal)
    world.load(claim(metadata={"finalizers": ["kubernetes.io/pvc-protection"]}))
    world.delete("PersistentVolumeClaim", "c")
    world.run(HOUR)
    assert refusal.tries == DEFAULT


def test_the_creation_of_the_claim_of_a_pod_is_repeated(new_world, build):
    refusal = Refusal(CreateObject, "PersistentVolumeClaim")
    world = new_world(Volumes(), refuse=refusal)
    world.load(CLASS)
    volume = {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": claim()["spec"]}}}
    world.create(build.pod("p", node="", meta={"uid": "u"}, volumes=[volume]))
    world.run(HOUR)
    assert refusal.tries == DEFAULT


def test_the_creation_of_a_provisioned_volume_is_repeated(new_world):
    refusal = Refusal(CreateObject, "PersistentVolume")
    world = new_world(ExternalProvisioner(VolumesConfig(provision_delay=0)), refuse=refusal)
    provisioner = {"volume.kubernetes.io/storage-provisioner": "csi.x"}
    world.load(CLASS, claim(metadata={"annotations": provisioner}))
    world.run(HOUR)
    assert refusal.tries == DEFAULT


def test_the_creation_of_a_volume_by_the_volume_controller_is_repeated(new_world):
    refusal = Refusal(CreateObject, "PersistentVolume")
    world = new_world(Volumes(VolumesConfig(provision_delay=0)), refuse=refusal)
    world.load(CLASS, claim())
    world.run(HOUR)
    assert refusal.tries == DEFAULT


def test_the_binding_of_a_claim_is_repeated_at_each_resync(new_world):
    """The resync period is 15 s."""
    refusal = Refusal(PatchObject, "PersistentVolumeClaim")
    world = new_world(Volumes(), refuse=refusal)
    volume = {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v", "uid": "v"},
        "spec": {"capacity": {"storage": "2Gi"}, "storageClassName": "fast"},
        "status": {"phase": "Available"},
    }  # fmt: skip
    world.load(CLASS, volume, claim(spec={"volumeName": "v"}))
    world.run(HOUR)
    assert 240 <= refusal.tries <= 242


def test_the_expansion_of_a_volume_is_repeated(new_world):
    """The delays are 1 s, 2 s, ..., 256 s, 300 s, 300 s, ..."""
    refusal = Refusal(PatchObject, "PersistentVolume")
    world = new_world(ExternalResizer(VolumesConfig(provision_delay=0)), refuse=refusal)
    volume = {
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": "v", "annotations": {"pv.kubernetes.io/provisioned-by": "csi.x"}},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "claimRef": {"name": "c", "namespace": "ns", "uid": "u"},
        },
        "status": {"phase": "Bound"},
    }  # fmt: skip
    bound = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
    world.load(volume, claim(spec={"volumeName": "v"}, status=bound))
    world.run(HOUR)
    assert refusal.tries == 1 + 9 + (3600 - 511) // 300
