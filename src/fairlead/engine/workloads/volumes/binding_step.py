"""Computes the next step for a PersistentVolumeClaim, and its commands.

Example: a claim `data` of a class with volumeBindingMode Immediate. No volume has a claimRef to the
claim, and the best suitable volume is `pv-3` (5Gi for a request of 4Gi). The step is BIND. First it
writes the claimRef of `pv-3`, then the phase of `pv-3`, the claim's volumeName and the claim's
phase. If no volume is suitable and the class has a provisioner, the step is PROVISION. If the claim
has no class and there is a default class, the step is SET_CLASS. If the mode is
WaitForFirstConsumer, there is no step until the scheduler sets selected-node.

upstream: pkg/controller/volume/persistentvolume/pv_controller.go: syncUnboundClaim, syncBoundClaim
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final

from msgspec import Struct

from fairlead.api.objects import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from fairlead.api.pods.facts import condition
from fairlead.api.pods.volumes import BOUND
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.command import Command
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.plugins.volume_binding.find_volumes import NO_PROVISIONER
from fairlead.engine.plugins.volume_lookup.volume_lookup import (
    WAIT_FOR_FIRST_CONSUMER,
    class_name,
    is_bound,
)
from fairlead.engine.state.volumes.assumed_volumes import SELECTED_NODE
from fairlead.engine.workloads.volumes.command import (
    bind,
    provision,
    remove_selected_node,
    set_class,
)
from fairlead.engine.workloads.volumes.volume_index import (
    VolumeIndex,
    is_volume_bound_to_claim,
    satisfies,
)

FAILING_AFTER: Final = seconds(300)
"""The age from which a claim without a volume shows that its provisioner fails.

A volume is usually created within seconds, and a provisioner repeats a failed creation at least
every five minutes.

source: kubernetes-csi/external-provisioner/cmd/csi-provisioner/csi-provisioner.go: retryIntervalMax
"""


# The error of PreBind if volumes are not bound within bindTimeoutSeconds (10 minutes).
# upstream: pkg/scheduler/framework/runtime/framework.go: RunPreBindPlugins
_NOT_BOUND: Final = 'PreBind plugin "VolumeBinding": binding volumes: '


class StepKind(Enum):
    """The kind of a claim's next step; RETRY means to sync the claim again after a failed write."""

    SET_CLASS = "set_class"
    BIND = "bind"
    PROVISION = "provision"
    RETRY = "retry"


class BindingStep(Struct, frozen=True):
    """The next step for a claim; two steps with equal fields have the same effect.

    `volume` is the volume to bind. `storage_class` is the class to set or to provision from. Each
    field is None if the step does not need it.
    """

    kind: StepKind
    claim: PersistentVolumeClaim
    volume: PersistentVolume | None = None
    storage_class: StorageClass | None = None


def next_step(index: VolumeIndex, claim: PersistentVolumeClaim) -> BindingStep | None:
    """Return the next step for `claim`, or None if no step is possible now."""
    if claim.metadata.deletion_timestamp:
        return None
    if claim.spec.volume_name:
        return _bind_step(index, claim)
    meant = [one for one in index.volumes_of(claim) if satisfies(one, claim)]
    if meant:
        return BindingStep(StepKind.BIND, claim, meant[0])
    storage_class = index.class_of(claim)
    if storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
        is_chosen = SELECTED_NODE in claim.metadata.annotations
        return _provision_step(claim, storage_class) if is_chosen else None
    free = index.best_free(claim)
    if free is not None:
        return BindingStep(StepKind.BIND, claim, free)
    if not class_name(claim) and claim.spec.storage_class_name is None:
        default = index.default_class()
        if default is not None:
            return BindingStep(StepKind.SET_CLASS, claim, storage_class=default)
    return _provision_step(claim, storage_class)


def _bind_step(index: VolumeIndex, claim: PersistentVolumeClaim) -> BindingStep | None:
    """Return the step that binds `claim` to the volume in its volumeName.

    Returns None if the claim is already bound or cannot be bound to the volume. But if the volume
    of a bound claim has lost its claimRef, the step binds the claim again. The volume then need not
    satisfy the claim.
    """
    volume = index.volumes.get(claim.spec.volume_name)
    if volume is None:
        return None
    if is_bound(claim) and claim.status.phase == BOUND and volume.spec.claim_ref is not None:
        return None
    suits = is_bound(claim) or (
        class_name(volume) == class_name(claim) and satisfies(volume, claim)
    )
    is_ours = is_volume_bound_to_claim(volume, claim) or (suits and index.is_free(volume, claim))
    return BindingStep(StepKind.BIND, claim, volume) if is_ours else None


def _provision_step(
    claim: PersistentVolumeClaim, storage_class: StorageClass | None
) -> BindingStep | None:
    if storage_class is None or storage_class.provisioner in NO_PROVISIONER:
        return None
    return BindingStep(StepKind.PROVISION, claim, storage_class=storage_class)


def lacks_provisioner(
    claim: PersistentVolumeClaim,
    storage_class: StorageClass | None,
    pods: Iterable[Pod],
    now: Instant,
) -> bool:
    """Return whether `claim` has waited for its provisioner for FAILING_AFTER.

    If it has, the provisioner of `storage_class` does not run, or cannot create the volume. `pods`
    are the pods that use the claim. `now` is the time of the dump that contains the claim.

    With the mode WaitForFirstConsumer, the provisioner acts when the scheduler has selected a node
    in an annotation of the claim. The time of the selection is unknown, but the pods can show that
    the scheduler selected the node long ago (`_awaits_volumes`).

    upstream: pkg/scheduler/framework/plugins/volumebinding/binder.go: BindPodVolumes
    """
    if storage_class is None or storage_class.provisioner in NO_PROVISIONER:
        return False
    if claim.spec.volume_name or not _is_old(claim, now):
        return False
    if storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
        return True
    is_requested = SELECTED_NODE in claim.metadata.annotations
    return is_requested and any(_awaits_volumes(pod, now) for pod in pods)


def _awaits_volumes(pod: Pod, now: Instant) -> bool:
    """Return whether `pod` shows that the scheduler has waited for its volumes for FAILING_AFTER.

    Returns True in two cases: `pod` was created at least FAILING_AFTER ago and the first attempt to
    schedule it has not ended, or the last attempt failed because the volumes were not bound in
    time.
    """
    if pod.spec.node_name:
        return False
    scheduled = condition(pod, "PodScheduled")
    return _is_old(pod, now) if scheduled is None else _NOT_BOUND in scheduled.message


def _is_old(obj: PersistentVolumeClaim | Pod, now: Instant) -> bool:
    created = obj.metadata.creation_timestamp
    try:
        return bool(created) and now - parse_timestamp(created) >= FAILING_AFTER
    except ValueError:  # a hand-written dump
        return False


def commands_of(index: VolumeIndex, step: BindingStep) -> list[Command]:
    """Return the commands of `step`, or [] if nothing has to change."""
    claim = step.claim
    if step.kind is StepKind.BIND and step.volume is not None:
        return bind(claim, step.volume)
    if step.storage_class is None:
        return []
    if step.kind is StepKind.SET_CLASS:
        return [set_class(claim, step.storage_class.metadata.name)]
    name = claim.metadata.annotations.get(SELECTED_NODE)
    node = index.nodes.get(name) if name is not None else None
    if name is not None and node is None:
        return [remove_selected_node(claim)]
    return [provision(claim, step.storage_class, node, index.csi_nodes.get(name or ""))]
