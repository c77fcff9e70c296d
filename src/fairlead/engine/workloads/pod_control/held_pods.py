"""HeldPods: creates the claims of a StatefulSet's pod before the pod.

A pod is held back until the API server has answered the creations of all its missing claims. If a
creation is refused, or a claim is being deleted, the pod is not created.

upstream: pkg/controller/statefulset/stateful_pod_control.go:CreateStatefulPod,
createPersistentVolumeClaims
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from fairlead.api.objects import PersistentVolumeClaim
from fairlead.engine.core.command import CreateObject


class HeldPod(Struct):
    """The creation of a pod that waits for its claims.

    `outstanding` has the keys of the claims whose creations are not answered yet. `errors` has one
    message for each claim that the pod cannot use.
    """

    creation: CreateObject
    outstanding: dict[str, None] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    @property
    def error(self) -> str:
        """All errors in one message; "" if there are none."""
        # upstream: apimachinery/pkg/util/errors/errors.go:aggregate.Error
        if len(self.errors) < 2:
            return "".join(self.errors)
        return f"[{', '.join(self.errors)}]"


class HeldPods(Struct):
    """The existing claims, and the pods that wait for claims."""

    _is_deleting: dict[str, bool] = field(default_factory=dict)  # by the key of each claim
    _held: dict[str, HeldPod] = field(default_factory=dict)  # by the key of the pod
    # by the key of each claim that is being created, the keys of the pods that wait for it
    _pods: dict[str, dict[str, None]] = field(default_factory=dict)

    def observe(self, claim: PersistentVolumeClaim) -> None:
        """Record that `claim` exists."""
        self._is_deleting[claim.key] = bool(claim.metadata.deletion_timestamp)

    def forget(self, claim: PersistentVolumeClaim) -> None:
        """Record that `claim` was deleted."""
        self._is_deleting.pop(claim.key, None)

    def hold(self, creation: CreateObject, claims: Iterable[CreateObject]) -> list[CreateObject]:
        """Hold back the `creation` of a pod; return the creations in `claims` that must be sent.

        A creation must be sent if its claim neither exists nor is being created for another pod.
        Two StatefulSets can have a claim in common, because `data-a` + `b-0` and `data` + `a-b-0`
        give the same name. `release` returns the pod's creation later.
        """
        pod = creation.target.key
        held = self._held[pod] = HeldPod(creation)
        missing: list[CreateObject] = []
        for one in claims:
            key = one.target.key
            is_deleting = self._is_deleting.get(key)
            if is_deleting is None:
                held.outstanding[key] = None
                if key not in self._pods:
                    missing.append(one)
                self._pods.setdefault(key, {})[pod] = None
            elif is_deleting:
                held.errors.append(f"pvc {one.target.name} is being deleted")
        return missing

    def handle_claim_outcome(self, claim: str, error: str) -> list[HeldPod]:
        """Record the answer to the creation of the claim with the key `claim`.

        `error` is "" if the creation succeeded. Returns the pods that waited for the claim.
        """
        waiting = map(self._held.get, self._pods.pop(claim, ()))
        found = [held for held in waiting if held is not None and claim in held.outstanding]
        for held in found:
            del held.outstanding[claim]
            if error:
                held.errors.append(error)
        return found

    def release(self, pod: str) -> HeldPod | None:
        """Remove and return the HeldPod with the key `pod`.

        Returns None if there is no such HeldPod, or if the creation of one of its claims has not
        been answered yet.
        """
        held = self._held.get(pod)
        return None if held is None or held.outstanding else self._held.pop(pod)
