"""SingleNodeVolumes: delays pods whose volume is still attached to another node.

Some volumes can be attached to only one node at a time: the volumes that have access modes, but
neither ReadWriteMany nor ReadOnlyMany. While a started pod uses such a volume on one node, a new
pod that uses it on another node does not start. How long the new pod waits depends on the state of
the old pod or its node:

    terminating    the new pod starts when the old pod has stopped
    unresponsive   the old pod exists until its node returns or is deleted, so the new pod waits
    lost           a pod was deleted although its kubelet does not answer, so the volume may still
                   be mounted; it is detached after DETACH_TIMEOUT, or immediately if the node has
                   the taint out-of-service

The start delay of a pod includes the time for attaching and detaching.

upstream: pkg/controller/volume/attachdetach/reconciler/reconciler.go: reconcile,
attachDesiredVolumes; pkg/volume/util/util.go: IsMultiAttachAllowed; pkg/volume/csi/csi_plugin.go:
CanAttach
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from msgspec import Struct, field

from fairlead.api.nodes.taint import OUT_OF_SERVICE
from fairlead.api.objects import CSIDriver, PersistentVolume, PersistentVolumeClaim, Pod
from fairlead.api.pods.volumes import named_claims
from fairlead.engine.core.command import ObjectRef, RecordEvent
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.plugins.volume_lookup.in_tree_volume import kind_of
from fairlead.engine.plugins.volume_lookup.volume_lookup import VolumeLookup
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo

# upstream: attach_detach_controller.go: DefaultTimerConfig (ReconcilerMaxWaitForUnmountDuration)
DETACH_TIMEOUT: Final[DurationNs] = seconds(6 * 60)
_ATTACHED: Final = (
    "Volume is already exclusively attached to one node and can't be attached to another"
)
MULTI_NODE_ACCESS_MODES: Final = frozenset(("ReadWriteMany", "ReadOnlyMany"))


class SingleNodeVolumes(Struct):
    """The claims in `cluster` whose volume can be attached to only one node at a time."""

    cluster: Cluster
    _detached_at: dict[str, Instant] = field(default_factory=dict)  # by claim

    def holder_of(self, pod: Pod) -> PodInfo | None:
        """Return a Running pod that uses a volume of `pod` on another node, or None."""
        use, table = self.cluster.table.volume_use, self.cluster.table
        claims = {key for key in self.claims_of(pod) if use.users_of(key) > 1}
        others = (one for row in use.pods for one in table.at(row).pods.values()) if claims else ()
        return next((one for one in others if _holds(one, claims, pod)), None)

    def free_at(self, pod: Pod) -> Instant:
        """Return the time at which all volumes of `pod` are detached from lost nodes.

        Returns 0 if no volume of `pod` was attached to a lost node.
        """
        if not self._detached_at:
            return 0
        return max((self._detached_at.get(key, 0) for key in self.claims_of(pod)), default=0)

    def delay_detach(self, pod: Pod, now: Instant) -> None:
        """Record that the volumes of `pod` stay attached for DETACH_TIMEOUT after `now`.

        Call this method when the node of `pod` is lost. Does nothing if the pod is not Running, or
        if the node has the out-of-service taint.
        """
        node = self.cluster.table.find(pod.spec.node_name)
        taints = () if node is None else node.node.spec.taints
        if pod.status.phase == "Running" and not any(one.key == OUT_OF_SERVICE for one in taints):
            self._detached_at |= dict.fromkeys(self.claims_of(pod), now + DETACH_TIMEOUT)

    def attach_error(self, pod: Pod, now: Instant) -> RecordEvent:
        """Return the event about the first volume of `pod` that is attached to another node.

        If `holder_of` returns a pod, the event names this pod as the user of the volume. If
        `holder_of` returns None, the volume is still attached to a lost node.
        """
        # upstream: reconciler.go: reportMultiAttachError; volume/types.go: GenerateMsg
        holder = self.holder_of(pod)
        if holder is None:
            used = {key for key, at in self._detached_at.items() if at > now}
            why = _ATTACHED
        else:
            used = {f"{holder.namespace}/{name}" for name in named_claims(holder.pod)}
            why = f"Volume is already used by pod(s) {holder.pod.metadata.name}"
        volume = next(one.spec.volume_name for one in self._claims_of(pod) if one.key in used)
        meta = pod.metadata
        return RecordEvent(
            regarding=ObjectRef("Pod", meta.namespace, meta.name, meta.uid),
            type="Warning",
            reason="FailedAttachVolume",
            action="",
            note=f'Multi-Attach error for volume "{volume}" {why}',
            reporting_controller="attachdetach-controller",
        )

    def claims_of(self, pod: Pod) -> Iterator[str]:
        """Yield the keys of the pod's claims whose volumes attach to only one node at a time."""
        return (claim.key for claim in self._claims_of(pod))

    def _claims_of(self, pod: Pod) -> Iterator[PersistentVolumeClaim]:
        lookup = VolumeLookup(self.cluster.related)
        for name in named_claims(pod):
            claim = lookup.claim(pod.metadata.namespace, name)
            volume = None if claim is None else lookup.volume(claim.spec.volume_name)
            if claim is not None and volume is not None and self._is_of_one_node(volume):
                yield claim

    def _is_of_one_node(self, volume: PersistentVolume) -> bool:
        csi = volume.spec.csi
        driver = None if csi is None else self.cluster.related.get(CSIDriver, csi.driver)
        return attaches_to_one_node(volume, driver)


def attaches_to_one_node(volume: PersistentVolume, driver: CSIDriver | None) -> bool:
    """Return whether `volume` can be attached to only one node at a time.

    `driver` is the CSIDriver of `volume`. `driver` is None if `volume` is not a CSI volume, or if
    the cluster has no CSIDriver object for it.
    """
    spec = volume.spec
    if not spec.access_modes or not MULTI_NODE_ACCESS_MODES.isdisjoint(spec.access_modes):
        return False
    if spec.csi is None:
        return kind_of(spec) is not None
    return driver is None or driver.spec.attach_required


def _holds(other: PodInfo, claims: Collection[str], pod: Pod) -> bool:
    """Return whether `other` uses one of `claims` and runs on a different node from `pod`."""
    spec, namespace = other.pod.spec, other.namespace
    if spec.node_name == pod.spec.node_name or other.pod.status.phase != "Running":
        return False
    return any(f"{namespace}/{name}" in claims for name in named_claims(other.pod))
