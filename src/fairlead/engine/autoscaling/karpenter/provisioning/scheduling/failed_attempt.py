"""FailedAttempts: the attempts of a provisioning pass that need not be repeated for an equal pod.

A failed attempt places nothing. As long as the pass places no other pod, an attempt for a pod with
the same constraints fails in the same way. A pass with thousands of equal pods that fit nowhere
therefore searches the nodes only once for them.

Two kinds of attempts are not remembered, because their results can differ between equal pods:

- attempts for pods that mount volumes
- attempts whose error texts can contain the hostname of a new NodeClaim. The hostname is a
  placeholder with a number that differs in each attempt. If the limits of all NodePools are
  reached, an attempt uses no placeholder and can be remembered.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import msgspec
from msgspec import Struct

from fairlead.api.well_known_label import HOSTNAME
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.nodeclaim import AddRefusal
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.pending_pod import PendingPod
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.topology import Topology
from fairlead.engine.autoscaling.karpenter.state.storage import claim_keys

_encode = msgspec.json.Encoder().encode


class FailedAttempt(Struct, frozen=True):
    """A failed attempt to place a pod.

    All nodes were tried. Then preferences of the pod were removed, one after another, and all nodes
    were tried again after each removal. `reasons` has a text for each removal. `refusals` are the
    results after the last removal. `hosts` is the number of placeholders for hostnames that the
    attempt used.
    """

    refusals: list[AddRefusal]
    reasons: Sequence[str]
    hosts: int


class FailedAttempts:
    """The failed attempts of a provisioning pass since it last placed a pod.

    A new topology group also ends the validity of all earlier attempts.
    """

    def __init__(self, topology: Topology) -> None:
        """Start without attempts; `topology` contains all TopologyGroups of the pass."""
        self._topology = topology
        self._known: dict[Hashable, FailedAttempt] = {}
        self._groups = (-1, -1)

    def key_of(self, pod: PendingPod) -> Hashable | None:
        """Return a key that is equal for pods with the same constraints.

        Returns None if the pod uses PersistentVolumeClaims, because attempts for equal pods can
        then have different results.
        """
        spec = pod.pod.spec
        if pod.volumes is not None or next(claim_keys(pod.pod), None) is not None:
            return None
        terms = b""
        if spec.affinity is not None or spec.topology_spread_constraints:
            terms = _encode((spec.affinity, spec.topology_spread_constraints))
        return id(pod.facts), pod.labels_shape, terms

    def find(self, key: Hashable | None) -> FailedAttempt | None:
        """Return the failed attempt for a pod with `key`; None if there is none."""
        if key is None or not self._known:
            return None
        if self._current_groups() != self._groups:
            self._known.clear()
            return None
        return self._known.get(key)

    def add(self, key: Hashable | None, pod: PendingPod, attempt: FailedAttempt) -> None:
        """Remember the failed `attempt` under `key`, the key of `pod` before its relaxation."""
        if key is None or any(one.reserved for one in attempt.refusals):
            return
        if attempt.hosts and self._depends_on_host(pod):
            return
        groups = self._current_groups()
        if groups != self._groups:
            self._known.clear()
            self._groups = groups
        self._known[key] = attempt

    def _depends_on_host(self, pod: PendingPod) -> bool:
        groups = (*pod.groups, *self._topology.repelling(pod))
        return HOSTNAME in pod.facts.requirements or any(one.key == HOSTNAME for one in groups)

    def forget(self) -> None:
        """Forget all attempts: the pass has placed a pod."""
        self._known.clear()

    def _current_groups(self) -> tuple[int, int]:
        return len(self._topology.groups), len(self._topology.inverse)
