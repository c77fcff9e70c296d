"""ExternalResizer: expands provisioned volumes whose claims request more storage.

A local cluster has no CSI drivers. This controller replaces the external-resizer of a driver, and
expands the volumes of every provisioner.

    a bound claim requests more than its volume has
      └─ after a delay ─▶ the volume has the requested capacity
                            └──────────▶ the claim's status has the capacity of the volume

upstream: kubernetes-csi/external-resizer/pkg/controller/controller.go:pvcNeedResize, resizePVC,
resizeVolume, markPVCResizeFinished
"""

from __future__ import annotations

from typing import ClassVar, Final

from fairlead.api.objects import ApiObject, PersistentVolume, PersistentVolumeClaim, ResourceList
from fairlead.api.pods.volumes import BOUND
from fairlead.api.quantity import parse_quantity
from fairlead.engine.core.command import Command, PatchObject, PatchStatus, RecordEvent
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.core.interest import Interest, WritesTo
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.stimulus import (
    CommandFailed,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    Stimulus,
)
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.workloads.config import VolumesConfig
from fairlead.engine.workloads.refusal_backoff import RefusalBackoff
from fairlead.engine.workloads.volumes.command import PROVISIONED_BY, claim_ref, volume_ref
from fairlead.engine.workloads.volumes.volume_index import (
    VolumeIndex,
    claim_key,
    is_volume_bound_to_claim,
)

_STORAGE: Final = "storage"
# upstream: cmd/csi-resizer/main.go: retry-interval-start, retry-interval-max
_RETRY_INITIAL: Final = seconds(1)
_RETRY_MAX: Final = seconds(300)
_KINDS: Final = (PersistentVolume, PersistentVolumeClaim)
_NAMES: Final = tuple(kind.__name__ for kind in _KINDS)


class ExternalResizer:
    """Expands the volume of a claim whose storage request has grown."""

    issuer: ClassVar[Issuer] = controller_account("persistent-volume-binder")
    interest: ClassVar[Interest] = Interest(
        changed=_KINDS,
        deleted=_KINDS,
        succeeded=(),
        failed=(WritesTo(PatchObject, _NAMES), WritesTo(PatchStatus, _NAMES)),
    )

    def __init__(self, config: VolumesConfig) -> None:
        """Start empty. An expansion takes `config.provision_delay`."""
        self._config = config
        self._index = VolumeIndex()
        self._begun: dict[str, None] = {}  # claims whose volume is being expanded, by key
        self._timers: TimerQueue[str] = TimerQueue()
        self._backoff: RefusalBackoff[str] = RefusalBackoff(
            _RETRY_INITIAL, _RETRY_MAX
        )  # by key of the claim

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Begin the expansions that `stimulus` requires, or finish expansions.

        Returns events about begun expansions, and writes of new capacities to the statuses of
        claims.
        """
        match stimulus:
            case ObjectChanged(one):
                self._index.observe(one)
                return self._react(one, now)
            case ObjectDeleted(one):
                self._index.forget(one)
                if isinstance(one, PersistentVolumeClaim):
                    self._backoff.reset(one.key)
            case ObjectsLoaded(objects):
                for one in objects:
                    self._index.observe(one)
                claims = (one for one in objects if isinstance(one, PersistentVolumeClaim))
                return [command for one in claims for command in self._react(one, now)]
            case CommandFailed(PatchObject() | PatchStatus() as command):
                self._retry(command.target.key, now)
            case _:
                pass
        return []

    def next_deadline(self) -> Instant | None:
        """Return the time at which the next expansion ends or is retried; None if there is none."""
        return self._timers.next_due()

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Return the commands for the claims whose expansion or retry is due."""
        commands: list[Command] = []
        for key in self._timers.pop_due(now):
            self._begun.pop(key, None)
            claim = self._index.claims.get(key)
            if claim is not None:
                due = self._expand(claim) or self._finish(claim)
                if not due:
                    self._backoff.reset(key)
                commands += due
        return commands

    def _react(self, one: ApiObject, now: Instant) -> list[Command]:
        key = claim_key(one) if isinstance(one, PersistentVolume) else one.key
        claim = self._index.claims.get(key or "")
        if claim is None or claim.key in self._begun:
            return []
        if not self._expand(claim):
            return self._finish(claim)
        self._begun[claim.key] = None
        self._timers.add(now + self._config.provision_delay, claim.key)
        note = f"External resizer is resizing volume {claim.spec.volume_name}"
        return [self._event(claim, "Resizing", note)]

    def _retry(self, key: str, now: Instant) -> None:
        """Schedule a retry of a refused write to the claim or the volume `key`."""
        volume = self._index.volumes.get(key)
        of_claim = claim_key(volume) if volume is not None else key
        if of_claim in self._index.claims:
            self._timers.add(self._backoff.next_try(of_claim, now), of_claim)

    def _expand(self, claim: PersistentVolumeClaim) -> list[Command]:
        """Return the write that gives the claim's volume the requested capacity, or []."""
        volume, wanted = self._volume_of(claim), claim.spec.resources.requests
        if volume is None or not _is_less(volume.spec.capacity, wanted):
            return []
        return [
            PatchObject(volume_ref(volume), {"spec": {"capacity": {_STORAGE: wanted[_STORAGE]}}})
        ]

    def _finish(self, claim: PersistentVolumeClaim) -> list[Command]:
        """Return the writes that copy the volume's new capacity to the claim's status, or []."""
        volume = self._volume_of(claim)
        if volume is None or not _is_less(claim.status.capacity, volume.spec.capacity):
            return []
        status = {"capacity": dict(volume.spec.capacity)}
        event = self._event(claim, "VolumeResizeSuccessful", "Resize volume succeeded")
        return [PatchStatus(claim_ref(claim), status), event]

    def _volume_of(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """Return the provisioned volume to which `claim` is bound; None if there is none."""
        volume = self._index.volumes.get(claim.spec.volume_name)
        is_bound = claim.status.phase == BOUND and not claim.metadata.deletion_timestamp
        if volume is None or not is_bound or not is_volume_bound_to_claim(volume, claim):
            return None
        return volume if PROVISIONED_BY in volume.metadata.annotations else None

    def _event(self, claim: PersistentVolumeClaim, reason: str, note: str) -> RecordEvent:
        volume = self._index.volumes[claim.spec.volume_name]
        reporting_controller = f"external-resizer {volume.metadata.annotations[PROVISIONED_BY]}"
        return RecordEvent(claim_ref(claim), "Normal", reason, reason, note, reporting_controller)


def _is_less(capacity: ResourceList, needed: ResourceList) -> bool:
    """Return whether `capacity` has less storage than `needed`.

    Returns False if one of the two lists has no amount of storage.
    """
    if _STORAGE not in capacity or _STORAGE not in needed:
        return False
    return parse_quantity(capacity[_STORAGE]).nano < parse_quantity(needed[_STORAGE]).nano
