"""SecondReplicas: how a workload gets a second replica, and whether this replica would run.

A budget can keep one of two pods ready during a drain. But if the second pod stays pending, or if
the API server refuses it, the budget refuses the eviction of the first pod.
"""

from __future__ import annotations

import json
import shlex
from typing import Final

from msgspec.structs import replace

from fairlead.api.objects import HorizontalPodAutoscaler
from fairlead.engine.scheduling.decision import Placement
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.outcome.scheduling_message import short_reason, with_explanation
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.node_drain.replacement_admission import (
    ReplacementAdmission,
    edit_of_refusal,
)

_SEVERAL: Final = 2  # replicas, so that one is ready while the other moves


class SecondReplicas:
    """Finds the commands that give workloads of a model a second replica."""

    def __init__(self, model: ClusterModel, admission: ReplacementAdmission) -> None:
        """Read the HorizontalPodAutoscalers of `model`; `admission` is for the same model."""
        self._model = model
        self._admission = admission
        self._autoscalers = {
            (one.spec.scale_target_ref.kind, one.metadata.namespace, one.spec.scale_target_ref.name)
            : one
            for one in model.objects
            if isinstance(one, HorizontalPodAutoscaler)
        }  # fmt: skip

    def command(self, ref: WorkloadRef) -> str:
        """Return the command that sets two replicas of `ref`.

        If a HorizontalPodAutoscaler with minReplicas below 2 scales the workload, the command
        changes minReplicas and, if necessary, maxReplicas.
        """
        found = self._autoscalers.get((ref.kind, ref.namespace, ref.name))
        if found is not None and found.spec.min_replicas < _SEVERAL:
            # The API server refuses a minReplicas above maxReplicas.
            limits = {"minReplicas": _SEVERAL}
            if found.spec.max_replicas < _SEVERAL:
                limits["maxReplicas"] = _SEVERAL
            patch = json.dumps({"spec": limits}, separators=(",", ":"))
            name = found.metadata.name
            return shlex.join(("kubectl", "-n", ref.namespace, "patch", "hpa", name, "-p", patch))
        kind, _, rest = str(ref).partition("/")
        target = f"{kind}/{rest.partition('/')[2]}"
        replicas = ("--replicas", str(_SEVERAL))
        return shlex.join(("kubectl", "-n", ref.namespace, "scale", target, *replicas))

    def obstacles(self, pod: PodInfo) -> list[str]:
        """Place a second pod like `pod` in the model; return what must be done first.

        The API server may refuse the second pod, or the pod may fit no node (`_no_room`).
        """
        return list(filter(None, (self._refusal(pod), self._no_room(pod))))

    def _refusal(self, pod: PodInfo) -> str:
        """Return what must change so that the API server admits another pod like `pod`.

        Returns "" if the API server admits the pod already.
        """
        refusal = self._admission.refusal_of_another(pod)
        if not refusal:
            return ""
        edit = edit_of_refusal(pod.namespace, refusal)
        return f"first {edit or f'let the API server admit a second pod ({refusal})'}"

    def _no_room(self, pod: PodInfo) -> str:
        """Place a second pod like `pod` in the model; return "", or advice if it fits no node.

        If `pod` has claims, return "" without a trial, because the second pod would have other
        claims.
        """
        spec = pod.pod.spec
        volumes = (one.persistent_volume_claim or one.ephemeral for one in spec.volumes)
        if spec.resource_claims or any(volumes):
            return ""
        new = self._model.replacement(pod).pod
        named = replace(new, metadata=replace(new.metadata, name=f"{new.metadata.name}-second"))
        decision = self._model.schedule(self._model.pod_info(named))
        if isinstance(decision, Placement):
            return ""
        reasons = with_explanation(short_reason(decision.message))
        return f"first make room for a second pod ({reasons})"
