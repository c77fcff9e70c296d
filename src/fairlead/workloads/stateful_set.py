"""StatefulSets: pods with names and ordinals that come back under the same name.

Differs from upstream for now: all missing pods are created at once instead of one after the
other, ordinals start at 0, and a changed template only reaches pods that are replaced anyway.

upstream: pkg/controller/statefulset/stateful_set_control.go, stateful_set_utils.go
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from fairlead.api.objects import Pod, StatefulSet
from fairlead.core.instant import Instant
from fairlead.workloads.pod_set import PodSet, PodState, pod_state
from fairlead.workloads.pod_template import with_labels
from fairlead.workloads.rule import Plan, Wish

POD_NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"
WHY_FINISHED: Final = "finished pod of a StatefulSet"
WHY_TOO_MANY: Final = "scaled down"
FINISHED: Final = (PodState.SUCCEEDED, PodState.FAILED)


def ordinal_of(owner_name: str, pod_name: str) -> int | None:
    """The ordinal in `pod_name`, None when it is no pod name of that StatefulSet."""
    # upstream: pkg/controller/statefulset/stateful_set_utils.go:getParentNameAndOrdinal
    parent, _, digits = pod_name.rpartition("-")
    return int(digits) if parent == owner_name and digits.isdecimal() else None


@dataclass(frozen=True, slots=True)
class StatefulPods:
    """Pods `name-0` to `name-(desired - 1)` like `template`, each with claims of its own.

    `claims` are the names of the templates of those; the claims themselves are made by
    `fairlead.workloads.volumes`.
    """

    name: str
    desired: int
    template: dict[str, Any]
    claims: tuple[str, ...] = ()

    @classmethod
    def of(cls, owner: StatefulSet) -> StatefulPods:
        """What `owner` wants."""
        spec = owner.spec
        claims = (one.get("metadata", {}).get("name", "") for one in spec.volume_claim_templates)
        return cls(owner.metadata.name, spec.replicas, spec.template, tuple(claims))

    def slot_of(self, pod: Pod) -> str:
        """Each ordinal is a slot, and the pod's name says it."""
        return pod.metadata.name

    def is_loss(self, pod: Pod, after: PodState | None) -> bool:
        """Every pod comes back."""
        return True

    def plan(self, pods: PodSet, slot: str | None, now: Instant) -> Plan:
        """Create ordinals whose names are free; delete finished pods and superfluous ordinals."""
        if slot is None:
            ordinals = range(self.desired)
            present = list(pods.pods.values())
        else:
            ordinals = self._ordinals(slot)
            present = pods.in_slot(slot)
        finished = [pod for pod in present if self._is_finished(pods, pod)]
        superfluous = [pod for pod in present if self._is_superfluous(pods, pod)]
        return Plan(
            create=tuple(
                self._wish(ordinal)
                for ordinal in ordinals
                if not pods.holds(f"{self.name}-{ordinal}")
            ),
            delete=(*finished, *superfluous),
            why=WHY_TOO_MANY if superfluous else WHY_FINISHED,
        )

    def _ordinals(self, slot: str) -> range:
        """The ordinal of `slot` if it is a wanted one."""
        ordinal = ordinal_of(self.name, slot)
        return range(0) if ordinal is None else range(self.desired)[ordinal : ordinal + 1]

    def _is_finished(self, pods: PodSet, pod: Pod) -> bool:
        return pod_state(pod) in FINISHED and pod.metadata.name not in pods.deaths

    def _is_superfluous(self, pods: PodSet, pod: Pod) -> bool:
        ordinal = ordinal_of(self.name, pod.metadata.name)
        return pod.metadata.name in pods.active and ordinal is not None and ordinal >= self.desired

    def _wish(self, ordinal: int) -> Wish:
        name = f"{self.name}-{ordinal}"
        # upstream: pkg/controller/statefulset/stateful_set_utils.go:updateIdentity, initIdentity
        labels = {POD_NAME_LABEL: name, POD_INDEX_LABEL: str(ordinal)}
        template = with_labels(self.template, labels)
        spec = template.get("spec", {}) | {"hostname": name}
        if self.claims:
            spec = spec | {"volumes": self._volumes(spec.get("volumes", []), name)}
        return Wish(template | {"spec": spec}, slot=name, name=name)

    def _volumes(self, described: list[dict[str, Any]], pod: str) -> list[dict[str, Any]]:
        """The pod's own claims, which take the place of volumes of the same name."""
        # upstream: pkg/controller/statefulset/stateful_set_utils.go:updateStorage
        own = [
            {"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{pod}"}}
            for name in self.claims
        ]
        return own + [volume for volume in described if volume.get("name") not in self.claims]
