"""WorkloadRef: the workload of a pod, under the name that users know: a Deployment, for example.

The workload is recognised by the names and labels that controllers write. So the dump may lack the
ReplicaSets of Deployments and the Jobs of CronJobs (`owner_name`). Other pods:

    a pod without a controller, or a static pod                                   the Pod itself
    a pod that a program created and that Pod etl controls, as with Spark
                                                                    the program in Pod etl
    a pod that a program created and that Deployment etl controls, as with Flink
                                                             the program in Deployment etl
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct

from fairlead.api.objects import OwnerReference, Pod, ReplicaSet
from fairlead.api.pods.facts import controller_of
from fairlead.api.pods.original import original_name
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.workloads.pod_control.controller_history import REVISION_LABEL
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.snapshot.owner_name import OWNER_BY_HASH, owner_of_controller
from fairlead.whatif.snapshot.served_kind import full_kind

UNAVAILABLE_MIN: Final = seconds(60)
"""A shorter time without a ready pod counts as a restart, a longer one as an outage."""
POD: Final = "Pod"
ROLLOUT: Final = "Rollout"  # a custom resource of Argo Rollouts, which owns ReplicaSets
_DAEMON_SET: Final = "DaemonSet"
_SHORT: Final = {
    _DAEMON_SET: "ds",
    "Deployment": "deploy",
    "ReplicaSet": "rs",
    "ReplicationController": "rc",
    "StatefulSet": "sts",
}
_DEPLOYMENT_HASH, _ROLLOUT_HASH = (label for label, _ in OWNER_BY_HASH)
# Kinds whose controllers create no pods, but that programs set as the controllers of their pods
# upstream: apache/spark BasicExecutorFeatureStep.scala: configurePod,
# apache/flink Fabric8FlinkKubeClient.java: createTaskManagerPod
_PROGRAM_KINDS: Final = (POD, "Deployment")
_PROGRAM_IN: Final = "program in "  # precedes one of these kinds in the kind of a WorkloadRef
# "Job" also stands for PyTorchJob, MPIJob, RayJob and the like.
_FINITE: Final = (POD, "Job", "PodGroup", "Workflow", "TaskRun")


class WorkloadRef(Struct, frozen=True, order=True, cache_hash=True):
    """A workload by kind and name; a pod without a controller is its own workload.

    If a custom resource has a kind with the name of a built-in kind, `kind` includes its API group
    (`full_kind`). A program in a Pod or Deployment may create pods. The workload of these pods has
    the kind "program in Pod" or "program in Deployment", and the name of that Pod or Deployment.
    """

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return a name such as `deploy/store/web` or `the program in deploy/etl/orders`.

        For the kinds that --scale can scale, the name has the form that --scale accepts.
        """
        kind = self.object_kind
        the = "" if kind == self.kind else f"the {_PROGRAM_IN}"
        return f"{the}{_SHORT.get(kind, kind.lower())}/{self.namespace}/{self.name}"

    @property
    def object_kind(self) -> str:
        """The kind of the object that `namespace` and `name` identify.

        If a program created the pods of the workload, the result is the kind of the object in which
        the program runs. Otherwise, it is `kind`.
        """
        return self.kind.removeprefix(_PROGRAM_IN)

    @property
    def is_permanent(self) -> bool:
        """Whether the workload keeps its pods running.

        The result is False for Jobs, including operators' Jobs such as PyTorchJobs, and for pods
        without a controller. It is also False for other workloads with pods that can end by
        themselves.
        """
        return not self._kind_without_group.endswith(_FINITE)

    @property
    def is_daemon_set(self) -> bool:
        """Whether the workload is a DaemonSet of Kubernetes or of an operator such as Kruise."""
        return self._kind_without_group == _DAEMON_SET

    @property
    def _kind_without_group(self) -> str:
        return self.kind.partition(".")[0]


class WorkloadReadiness(Struct, frozen=True, kw_only=True):
    """The numbers of ready pods of a workload during a run."""

    wanted: int  # the number of pods that should be ready at the end
    before: int  # ready at the start
    lowest: int  # ready at the worst moment
    # The total time for which only `lowest` pods were ready. None if `lowest` is less than `wanted`
    # and the number of ready pods remains at `lowest` until the end. If `has_ended`, the time from
    # the last change of the number to the end of the run does not count.
    lowest_for: DurationNs | None
    at_end: int  # ready at the end
    gaps: int = 1  # the number of separate periods in `lowest_for`
    # Each change of the number of ready pods: the time of the change and the new number. () for
    # permanent workloads, and for other workloads, such as Jobs, if `has_ended` is False.
    ready_counts: tuple[tuple[Instant, int], ...] = ()
    # The same changes for workloads that a HorizontalPodAutoscaler scales during the run, otherwise
    # ().
    history: tuple[tuple[Instant, int], ...] = ()
    # The indexes that an Indexed Job does not try again.
    failed_indexes: frozenset[int] = frozenset()

    @property
    def had_none(self) -> bool:
        """Whether at some time no pod was ready, although some were ready before."""
        return self.lowest == 0 < self.before and self.wanted > 0

    @property
    def is_outage(self) -> bool:
        """Whether the workload had no ready pod for UNAVAILABLE_MIN in total, or until the end."""
        is_long = self.lowest_for is None or self.lowest_for >= UNAVAILABLE_MIN
        return self.had_none and is_long

    @property
    def lowest_for_words(self) -> str:
        """The time for which only `lowest` pods were ready, such as `5m51s`.

        If the time consists of several periods, the text says so: `20m20s in 20 gaps`. If the last
        period lasts until the end, the text is `to the end`.

        The text is "" if `lowest` is at least `before` or at least `wanted`.
        """
        if self.lowest >= min(self.before, self.wanted):
            return ""
        if self.lowest_for is None:
            return "to the end"
        gaps = f" in {self.gaps:,} gaps" if self.gaps > 1 else ""
        return f"{for_readers(self.lowest_for)}{gaps}"

    @property
    def has_ended(self) -> bool:
        """Whether the workload has fewer ready pods only because it wants fewer pods.

        The result is True if three conditions hold. At the end, at least `wanted` pods are ready.
        At the start, more pods were ready than at the end. At no time were fewer pods ready than at
        the end.
        """
        return self.wanted <= self.at_end == self.lowest < self.before


Revision = tuple[WorkloadRef, str]
"""A workload and a revision of its template; "" if the workload has no revisions."""


def workload_of(pod: Pod) -> WorkloadRef:
    """Return the workload of `pod`; for a pod without a controller, the pod itself."""
    meta = pod.metadata
    owner = controller_of(meta)
    if owner is None or owner.kind == "Node":
        return WorkloadRef(POD, meta.namespace, original_name(pod))
    get = meta.labels.get
    return _workload_of_owner(owner, meta.namespace, get(_DEPLOYMENT_HASH), get(_ROLLOUT_HASH))


def workload_of_replica_set(found: ReplicaSet) -> WorkloadRef:
    """Return the workload of the pods that the ReplicaSet `found` creates (`workload_of`)."""
    meta = found.metadata
    labels = (found.spec.template.get("metadata") or {}).get("labels") or {}
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name=meta.name)
    digests = labels.get(_DEPLOYMENT_HASH), labels.get(_ROLLOUT_HASH)
    return _workload_of_owner(owner, meta.namespace, *digests)


# An owner reference keeps its hash, so a look-up takes a fifth of the time of the function.
@lru_cache(4096)
def _workload_of_owner(owner: OwnerReference, namespace: str, *digests: str | None) -> WorkloadRef:
    """Return the workload of pods with the controller `owner`.

    `digests` are the values of the labels in `OWNER_BY_HASH`; a value is None if the label is
    missing.
    """
    kind = full_kind(owner.kind, owner.api_version)
    above = owner_of_controller(kind, owner.name, digests)
    if above is not None:
        return WorkloadRef(above[0], namespace, above[1])
    if kind in _PROGRAM_KINDS:
        return WorkloadRef(f"{_PROGRAM_IN}{kind}", namespace, owner.name)
    return WorkloadRef(kind, namespace, owner.name)


def revision_of(pod: Pod) -> str:
    """Return the template revision of `pod`; "" if its workload has no revisions."""
    labels = pod.metadata.labels
    return revision_in(labels) or labels.get(REVISION_LABEL, "")


def revision_in(labels: Mapping[str, str]) -> str:
    """Return the template revision in the labels of a ReplicaSet or pod; "" if there is none."""
    for label, _ in OWNER_BY_HASH:
        if found := labels.get(label):
            return found
    return ""
