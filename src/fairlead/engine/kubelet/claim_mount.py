"""Finds out why a kubelet cannot mount the claims of a pod yet.

The scheduler binds a pod only after the pod's claims are bound. A pod that is created with a node
name skips the scheduler. So the claims of such a pod may be missing or unbound. The pod then does
not start, and the kubelet tries again after RETRY.

Differs from upstream: a claim is checked even if no container mounts its volume.

upstream: pkg/kubelet/volumemanager/populator/desired_state_of_world_populator.go: createVolumeSpec,
getPVCExtractPV; volume_manager.go: WaitForAttachAndMount; pkg/kubelet/kubelet.go: SyncPod
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import Pod, Volume
from fairlead.api.pods.volumes import BOUND, claim_name, is_claimed, is_made_for
from fairlead.engine.core.instant import DurationNs, seconds
from fairlead.engine.plugins.volume_lookup.volume_lookup import VolumeLookup, claim_not_owned
from fairlead.engine.state.related_objects import RelatedObjects

FAILED_MOUNT: Final = "FailedMount"
RETRY: Final[DurationNs] = seconds(10)  # upstream: kubelet.go: backOffPeriod


def mount_error(pod: Pod, related: RelatedObjects) -> str:
    """Return the event note that names the claims that `pod` cannot mount.

    A claim cannot be mounted if it does not exist, is being deleted or is not bound. The claim of
    an ephemeral volume also cannot be mounted if it was not created for `pod`. Returns "" if all
    claims can be mounted.
    """
    lookup = VolumeLookup(related)
    problems = {
        volume.name: problem
        for volume in pod.spec.volumes
        if is_claimed(volume) and (problem := _problem(pod, volume, lookup))
    }
    if not problems:
        return ""
    names = " ".join(sorted(problems))
    return (
        f"Unable to attach or mount volumes: unmounted volumes=[{names}], unattached volumes=[], "
        f"failed to process volumes=[{names}]: {'; '.join(sorted({*problems.values()}))}"
    )


def _problem(pod: Pod, volume: Volume, lookup: VolumeLookup) -> str:
    namespace, name = pod.metadata.namespace, claim_name(pod, volume)
    claim = lookup.claim(namespace, name)
    if claim is None:
        missing = f'persistentvolumeclaims "{name}" not found'
        why = f"failed to fetch PVC from API server: {missing}"
    elif claim.metadata.deletion_timestamp:
        why = "PVC is being deleted"
    elif claim.status.phase != BOUND:
        why = "PVC is not bound"
    elif volume.ephemeral is not None and not is_made_for(claim, pod):
        return claim_not_owned(namespace, name, pod.metadata.name)
    else:
        return ""
    return f"error processing PVC {namespace}/{name}: {why}"
