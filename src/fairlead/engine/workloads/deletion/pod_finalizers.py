"""PodFinalizers: removes the finalizers that other programs have put on pods.

Kueue (`kueue.x-k8s.io/managed`), Argo Workflows (`workflows.argoproj.io/status`), Flyte and other
operators put finalizers on their pods. The operators remove these finalizers when they have
recorded the end of the pod. A simulation has none of these programs. If this controller did not
run, a drained or preempted pod would stay forever.

If a finalizer already kept an ended pod when the cluster dump was written, the pod stays. The
program that added this finalizer evidently does not remove it.

upstream: sigs.k8s.io/kueue pkg/controller/jobs/pod/pod_controller.go:Finalize,
github.com/argoproj/argo-workflows workflow/controller/controller.go:cleanupPod
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct, field

from fairlead.api.finalizer import JOB_TRACKING
from fairlead.api.objects import Node, Pod
from fairlead.api.pods.facts import (
    condition,
    foreign_finalizers,
    is_terminal,
    is_terminating,
)
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.command import Command, PatchObject, pod_ref
from fairlead.engine.core.controller import NoDeadlines
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.stimulus import ObjectChanged, ObjectsLoaded, Stimulus


class PodFinalizers(NoDeadlines, Struct):
    """Removes finalizers that no controller of Kubernetes removes (`foreign_finalizers`).

    Only terminating pods that have ended or have no node lose these finalizers.
    """

    issuer: ClassVar[Issuer] = controller_account("pod-garbage-collector")
    interest: ClassVar[Interest] = Interest(
        changed=(Pod,), deleted=(), succeeded=(), failed=(), readiness=False
    )

    _stuck: dict[str, None] = field(default_factory=dict)  # uids of pods whose finalizers stay

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Remove the `foreign_finalizers` of a terminating pod that has ended or has no node.

        When objects are loaded, record the pods among them whose finalizers must stay.
        """
        match stimulus:
            case ObjectChanged(Pod() as pod):
                return [*self.handle_pod(pod, now)]
            case ObjectsLoaded():
                self._load(stimulus, now)
                return []
            case _:
                return []

    def handle_pod(self, pod: Pod, now: Instant) -> Sequence[Command]:
        """Return the patch that removes the `foreign_finalizers` of `pod`; () if none is needed."""
        if not _is_held(pod) or pod.metadata.uid in self._stuck:
            return ()
        # The Job controller removes its finalizer first, because each patch replaces all of them.
        if JOB_TRACKING in pod.metadata.finalizers or not _has_ended(pod):
            return ()
        foreign = foreign_finalizers(pod)
        kept = [one for one in pod.metadata.finalizers if one not in foreign]
        return [PatchObject(pod_ref(pod), {"metadata": {"finalizers": kept or None}})]

    def _load(self, loaded: ObjectsLoaded, now: Instant) -> None:
        held = [pod for pods in loaded.replicas if _is_held(pods[0]) for pod in pods]
        nodes = (one for one in loaded.others if isinstance(one, Node)) if held else ()
        by_name = {one.metadata.name: one for one in nodes}
        for pod in held:
            if is_kept_after_end(pod, by_name.get(pod.spec.node_name), now):
                self._stuck[pod.metadata.uid] = None


def is_kept_after_end(pod: Pod, node: Node | None, now: Instant) -> bool:
    """Return whether foreign finalizers keep the terminating `pod` although its containers ended.

    The containers have ended if the pod is finished or has no node. The containers also count as
    ended if the grace period is over and the pod's `node` is known and not silent. A node is silent
    if its Ready condition is "Unknown". The rule about the grace period is needed because kubelets
    before 1.27 do not report the end of a deleted pod.
    """
    if not _is_held(pod):
        return False
    is_over = parse_timestamp(pod.metadata.deletion_timestamp) <= now
    return _has_ended(pod) or (is_over and node is not None and not _is_silent(node))


def _is_held(pod: Pod) -> bool:
    return is_terminating(pod) and bool(foreign_finalizers(pod))


def _has_ended(pod: Pod) -> bool:
    return is_terminal(pod) or not pod.spec.node_name


def _is_silent(node: Node) -> bool:
    ready = condition(node, "Ready")
    return ready is not None and ready.status == "Unknown"
