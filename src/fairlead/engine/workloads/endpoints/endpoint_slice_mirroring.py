"""EndpointMirroring: creates EndpointSlices for Endpoints that users write by hand.

The slices let clients that read only slices find the endpoints of a Service without a selector.
Endpoints are mirrored if a Service without a selector has the same name. Endpoints with the label
endpointslice.kubernetes.io/skip-mirror and leader-election records are not mirrored.

upstream: pkg/controller/endpointslicemirroring/endpointslicemirroring_controller.go
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from msgspec import Struct, field

from fairlead.api.objects import ApiObject, Endpoints, EndpointSlice, Service
from fairlead.engine.core.command import Command, CreateObject, DeleteObject, PatchObject
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    Stimulus,
)
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.engine.workloads.endpoints.endpoint_slice import MANAGED_BY, SERVICE_NAME, ref_of
from fairlead.engine.workloads.endpoints.mirrored_slice import (
    ADDRESSES_MAX,
    MIRROR_CONTROLLER,
    mirrored,
    skipped,
)
from fairlead.engine.workloads.identity import owner_event
from fairlead.engine.workloads.work_queue import Key, WorkQueue, Write

SKIP: Final = "endpointslice.kubernetes.io/skip-mirror"
ELECTION: Final = "control-plane.alpha.kubernetes.io/leader"
WHY_GONE: Final = "there is nothing to mirror"
_WRITES: Final = (CreateObject, PatchObject, DeleteObject)


class MirrorState(Struct):
    """A Service, the Endpoints of the same name, and the slices that mirror the Endpoints."""

    service: Service | None = None
    endpoints: Endpoints | None = None
    slices: dict[str, EndpointSlice] = field(default_factory=dict)
    serial: int = 0
    skipped: int = 0  # number of skipped addresses in the last event

    @property
    def is_wanted(self) -> bool:
        """Whether the Endpoints must be mirrored to slices."""
        if self.service is None or self.service.spec.selector or self.endpoints is None:
            return False
        meta = self.endpoints.metadata
        is_left_out = meta.labels.get(SKIP) == "true" or ELECTION in meta.annotations
        return not is_left_out and not meta.deletion_timestamp


class EndpointMirroring:
    """Writes EndpointSlices that mirror the Endpoints that users write by hand."""

    issuer: ClassVar[Issuer] = controller_account("endpointslicemirroring-controller")
    interest: ClassVar[Interest] = Interest(
        changed=(Service, Endpoints, EndpointSlice), succeeded=_WRITES, failed=_WRITES
    )

    def __init__(self, config: WorkloadsConfig | None = None) -> None:
        config = config or WorkloadsConfig()
        self._first_serial = config.first_serial
        self._queue = WorkQueue(config)
        self._mirrors: dict[Key, MirrorState] = {}
        self._mirror_keys: dict[Key, Key] = {}  # key of a slice -> key of its Endpoints

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Record which Endpoints changed; `handle_deadline` then writes their EndpointSlices."""
        match stimulus:
            case ObjectChanged(one):
                self._observe(one)
            case ObjectDeleted(one):
                self._forget(one)
            case ObjectsLoaded(objects):
                self._load(objects)
            case CommandSucceeded(CreateObject() | PatchObject() | DeleteObject() as command):
                self._queue.record_outcome(command.target, None)
            case CommandFailed(CreateObject() | PatchObject() | DeleteObject() as command):
                self._queue.record_outcome(command.target, now)
            case _:
                pass
        return []

    def next_deadline(self) -> Instant | None:
        """Return 0 (already due) if Endpoints have changed, else the time of the next retry.

        Returns None if no Endpoints have changed and no retry is scheduled.
        """
        return self._queue.next_due()

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Return the writes for the Endpoints that have changed or are due for a retry."""
        commands: list[Command] = []
        for key in self._queue.pop_due(now):
            mirror = self._mirrors.get(key)
            if mirror is None:
                continue
            written = self._sync(mirror)
            self._queue.sent(key, written, now)
            commands += [*self._skip_event(mirror), *written]
            if mirror == MirrorState(serial=mirror.serial) and not self._queue.is_pending(key):
                del self._mirrors[key]
        return commands

    def _load(self, objects: Iterable[ApiObject]) -> None:
        for one in objects:
            self._observe(one)

    def _observe(self, one: ApiObject) -> None:
        key = (one.metadata.namespace, one.metadata.name)
        match one:
            case Service():
                self._mirror(key).service = one
            case Endpoints():
                self._mirror(key).endpoints = one
            case EndpointSlice():
                self._observe_slice(key, one)
            case _:
                pass

    def _observe_slice(self, key: Key, one: EndpointSlice) -> None:
        labels, mirror_key = one.metadata.labels, self._mirror_keys.pop(key, None)
        if mirror_key is not None:
            self._mirror(mirror_key).slices.pop(one.metadata.name, None)
        if labels.get(MANAGED_BY) == MIRROR_CONTROLLER and labels.get(SERVICE_NAME):
            mirror_key = self._mirror_keys[key] = (one.metadata.namespace, labels[SERVICE_NAME])
            self._mirror(mirror_key).slices[one.metadata.name] = one

    def _forget(self, one: ApiObject) -> None:
        key = (one.metadata.namespace, one.metadata.name)
        match one:
            case Service():
                self._mirror(key).service = None
            case Endpoints():
                self._mirror(key).endpoints = None
            case EndpointSlice() if (mirror_key := self._mirror_keys.pop(key, None)) is not None:
                self._mirror(mirror_key).slices.pop(one.metadata.name, None)
            case _:
                pass

    def _mirror(self, key: Key) -> MirrorState:
        """Queue `key` for a sync; return the MirrorState of `key`, a new one if there is none."""
        self._queue.add(key)
        return self._mirrors.setdefault(key, MirrorState(serial=self._first_serial))

    def _sync(self, mirror: MirrorState) -> list[Write]:
        if not mirror.is_wanted or mirror.endpoints is None:
            return [DeleteObject(ref_of(one), why=WHY_GONE) for one in mirror.slices.values()]
        changes = mirrored(mirror.endpoints, mirror.slices.values(), mirror.serial)
        mirror.serial += len(changes)
        return list(changes)

    def _skip_event(self, mirror: MirrorState) -> list[Command]:
        """Return the event about skipped addresses, or [] if their number is 0 or unchanged."""
        if not mirror.is_wanted or mirror.endpoints is None:
            mirror.skipped = 0
            return []
        before, mirror.skipped = mirror.skipped, skipped(mirror.endpoints)
        if mirror.skipped in (0, before):
            return []
        note = (
            f"A max of {ADDRESSES_MAX} addresses can be mirrored to EndpointSlices per Endpoints "
            f"subset. {mirror.skipped} addresses were skipped"
        )
        target = ref_of(mirror.endpoints)
        return [owner_event(target, "TooManyAddressesToMirror", note, is_warning=True)]
