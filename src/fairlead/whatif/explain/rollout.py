"""Finds the pods that the rollout of a workload has yet to replace.

    kind          a pod has an old template if
    Deployment    another ReplicaSet controls it than the one with the template of the Deployment
    StatefulSet   its revision is not status.updateRevision
    DaemonSet     its label pod-template-generation is not that of the DaemonSet

upstream: pkg/controller/deployment/util/deployment_util.go: FindNewReplicaSet,
staging/src/k8s.io/kubectl/pkg/polymorphichelpers/rollout_status.go: Status
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fairlead.api.json import mapping, text
from fairlead.api.pods.facts import controller_of
from fairlead.apiserver.kind import DAEMON_SET, DEPLOYMENT, REPLICA_SET, STATEFUL_SET
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.workloads.daemon_set.rule import GENERATION_LABEL, TEMPLATE_GENERATION
from fairlead.engine.workloads.deployment.revision import REVISION
from fairlead.engine.workloads.identity import ordinal_of
from fairlead.engine.workloads.pod_control.pod_template import same_template
from fairlead.whatif.outcome.workload import WorkloadRef, revision_of
from fairlead.whatif.snapshot.manifest import Manifest


def pods_to_replace(
    workload: Manifest,
    controllers: Iterable[Manifest],
    pods: Sequence[PodInfo],
    kept: Mapping[WorkloadRef, int | None],
) -> list[PodInfo]:
    """Return those of `pods` that have an old template, and that the rollout replaces.

    `pods` are the pods of `workload`, and `controllers` the objects that it controls. `kept` is the
    result of `kept_revisions`: pods that keep their revision are left out. The result is [] if the
    workload is paused, if its controller has not observed its last change, or if the dump does not
    tell which template is the current one.
    """
    if workload.kind is DEPLOYMENT:
        if mapping(workload.value, "spec").get("paused") is True:
            return []
        sets = [one for one in controllers if one.kind is REPLICA_SET]
        current = _current_set(workload, sets)
        return [pod for pod in pods if current and _controller(pod) not in ("", current)]
    if workload.kind not in (STATEFUL_SET, DAEMON_SET):
        return []
    ref = WorkloadRef(workload.full_kind, workload.ref.namespace, workload.ref.name)
    first = kept.get(ref, 0)
    if first is None:
        return []
    if workload.kind is DAEMON_SET:
        generation = text(workload.value, "metadata", "annotations", TEMPLATE_GENERATION)
        known = ((pod, pod.labels.get(GENERATION_LABEL, "")) for pod in pods)
        return [pod for pod, own in known if generation and own not in ("", generation)]
    status = mapping(workload.value, "status")
    if status.get("observedGeneration", 0) != workload.metadata.generation:
        return []
    revision = text(status, "updateRevision")
    return [
        pod
        for pod in pods
        if revision and revision_of(pod.pod) not in ("", revision)
        if (ordinal_of(ref.name, pod.pod.metadata.name) or 0) >= first
    ]


def _current_set(deployment: Manifest, sets: Sequence[Manifest]) -> str:
    """Return the name of the ReplicaSet in `sets` for the template of `deployment`; "" if none.

    If no ReplicaSet has the template, it is the one with the revision of the Deployment.
    """
    template = mapping(deployment.value, "spec", "template")
    alike = [one for one in sets if same_template(mapping(one.value, "spec", "template"), template)]
    oldest = min(
        ((one.metadata.creation_timestamp, one.ref.name) for one in alike), default=("", "")
    )
    revision = deployment.metadata.annotations.get(REVISION, "")
    numbered = (one for one in sets if one.metadata.annotations.get(REVISION, "") == revision)
    return oldest[1] or next((one.ref.name for one in numbered if revision), "")


def _controller(pod: PodInfo) -> str:
    found = controller_of(pod.pod.metadata)
    return "" if found is None else found.name
