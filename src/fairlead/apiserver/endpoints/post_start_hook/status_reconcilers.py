"""StatusReconcilers: writes the statuses that the API server itself maintains.

    FlowSchema   Dangling: whether its priority level is missing
    APIService   Available: True if the APIService names no Service; otherwise False, with a reason

upstream: apiserver/pkg/util/flowcontrol/apf_controller.go,
kube-aggregator/pkg/controllers/status/{local,remote}/*_available_controller.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.condition import with_conditions
from fairlead.apiserver.endpoints.field_manager import track, tracking_of
from fairlead.apiserver.endpoints.post_start_hook.reconcile_delay import NO_DELAY, ReconcileDelay
from fairlead.apiserver.kind import Kind, kind_of
from fairlead.apiserver.patch.managedfields.server_side_apply import ApplyRequest, server_side_apply
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.registry.strategies.apiregistration import LOCAL
from fairlead.apiserver.storage.storage import ChangeType, Storage, StoredChange


def _kind(api_version: str, kind: str) -> Kind:
    return kind_of({"apiVersion": api_version, "kind": kind})


FLOW_SCHEMA: Final = _kind("flowcontrol.apiserver.k8s.io/v1", "FlowSchema")
PRIORITY_LEVEL: Final = _kind("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration")
API_SERVICE: Final = _kind("apiregistration.k8s.io/v1", "APIService")
SERVICE: Final = _kind("v1", "Service")
# Mandatory and suggested priority levels (upstream: apis/flowcontrol/bootstrap/default.go).
BUILT_IN_LEVELS: Final = (
    "exempt", "catch-all", "system", "node-high", "leader-election", "workload-high",
    "workload-low", "global-default",
)  # fmt: skip
_FLOW_MANAGER: Final = "api-priority-and-fairness-config-consumer-v1"
_OWN_NAME: Final = "kube-apiserver"
_RESOURCES: Final = frozenset(
    one.resource for one in (FLOW_SCHEMA, PRIORITY_LEVEL, API_SERVICE, SERVICE)
)
_Key = tuple[str, str]


class StatusReconcilers:
    """Records which objects in the store have changed; `reconcile` updates their statuses."""

    def __init__(self, store: Store, delays: ReconcileDelay = NO_DELAY) -> None:
        """Subscribe to later changes in `store`. Existing objects are not recorded as changed.

        `delays` says how long after a change of an object its status is written.
        """
        self._store = store
        self._delays: Mapping[str, int] = {
            FLOW_SCHEMA.kind: delays.flow_status,
            API_SERVICE.kind: delays.service_status,
        }
        self._changed: dict[_Key, None] = {}
        self._due: dict[_Key, int] = {}
        store.storage.subscribe(self._note, _RESOURCES.__contains__)

    @property
    def waits(self) -> bool:
        """True if a status is to be written now or later."""
        return bool(self._changed or self._due)

    def reconcile(self, now: int) -> None:
        """Write the changed statuses whose delays have ended at `now` (ns since 1970)."""
        changed, self._changed = self._changed, {}
        for key in changed:
            self._due.setdefault(key, now + self._delays[key[0]])
        for key in [key for key, due in self._due.items() if due <= now]:
            del self._due[key]
            self._reconcile(*key, now)
        self._changed = {}  # ignore the writes above

    def _note(self, change: StoredChange) -> None:
        match change.kind.kind:
            case "FlowSchema" | "APIService" if change.type is not ChangeType.DELETED:
                self._changed[change.kind.kind, change.object["metadata"]["name"]] = None
            case "PriorityLevelConfiguration" if change.kind is PRIORITY_LEVEL:
                self._note_all(FLOW_SCHEMA)
            case "Service" if change.kind is SERVICE and change.type is not ChangeType.MODIFIED:
                self._note_all(API_SERVICE)

    def _note_all(self, kind: Kind) -> None:
        for obj in self._store.storage.unsorted(kind):
            self._changed[kind.kind, obj["metadata"]["name"]] = None

    def _reconcile(self, kind: str, name: str, now: int) -> None:
        kind_of_object, write = _WRITERS[kind]
        obj = self._store.storage.find(kind_of_object, "", name)
        if obj is None:
            return
        changed = write(obj, self._store.storage, now)
        if changed is not None:
            self._store.storage.put(kind_of_object, changed)


def _flow_schema(obj: Json, storage: Storage, now: int) -> Json | None:
    """Return `obj` with its Dangling condition; None if the condition does not change."""
    level = obj["spec"]["priorityLevelConfiguration"]["name"]
    about = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}"'
    is_there = level in BUILT_IN_LEVELS or storage.find(PRIORITY_LEVEL, "", level) is not None
    condition = {
        "type": "Dangling",
        "status": "False" if is_there else "True",
        "reason": "Found" if is_there else "NotFound",
        "message": f"{about} {'and it exists' if is_there else 'but there is no such object'}",
    }
    status = _with_condition(obj, condition, now)
    tracking = tracking_of(FLOW_SCHEMA, "status")
    if status is None or tracking is None:
        return None
    own = [one for one in status["conditions"] if one.get("type") == condition["type"]]
    config = {
        "apiVersion": FLOW_SCHEMA.api_version,
        "kind": FLOW_SCHEMA.kind,
        "metadata": {"name": obj["metadata"]["name"]},
        "status": {"conditions": own},
    }
    application = ApplyRequest(
        config=config, manager=_FLOW_MANAGER, force=True, subresource="status"
    )
    return server_side_apply(tracking, obj, application, format_timestamp(now))


def _api_service(obj: Json, storage: Storage, now: int) -> Json | None:
    """Return `obj` with its Available condition; None if the condition does not change."""
    status = _with_condition(obj, _availability(obj["spec"].get("service"), storage), now)
    if status is None:
        return None
    return track(API_SERVICE, _OWN_NAME, "Update", "status", now)(obj, {**obj, "status": status})


def _availability(service: Json | None, storage: Storage) -> Json:
    if service is None:
        return dict(LOCAL)
    condition = {"type": "Available", "status": "False"}
    namespace, name = service.get("namespace", ""), service.get("name", "")
    named = f'service/{name} in "{namespace}"'
    found = storage.find(SERVICE, namespace, name)
    if found is None:
        return {**condition, "reason": "ServiceNotFound", "message": f"{named} is not present"}
    port = service.get("port", 443)
    if not any(one.get("port") == port for one in found["spec"].get("ports") or ()):
        why = f"{named} is not listening on port {port}"
        return {**condition, "reason": "ServicePortError", "message": why}
    # The endpoints of the Service are not read. Simulated pods serve no API, so the APIService is
    # unavailable in any case.
    why = f'endpoints for {named} have no addresses with port name ""'
    return {**condition, "reason": "MissingEndpoints", "message": why}


def _with_condition(obj: Json, condition: Json, now: int) -> Json | None:
    """Return the status of `obj` with `condition` merged in; None if this changes nothing."""
    status = obj.get("status") or {}
    had = status.get("conditions") or []
    conditions = with_conditions(had, (condition,), format_timestamp(now))
    return None if conditions == had else {**status, "conditions": conditions}


_WRITERS: Final[Mapping[str, tuple[Kind, Callable[[Json, Storage, int], Json | None]]]] = {
    FLOW_SCHEMA.kind: (FLOW_SCHEMA, _flow_schema),
    API_SERVICE.kind: (API_SERVICE, _api_service),
}
