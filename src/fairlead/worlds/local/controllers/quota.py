"""What is used of each ResourceQuota, counted as objects come and go.

Admission enforces a quota by its status and charges what it lets in; this fills in the status of a
new quota, gives back what has gone, and puts right what came otherwise. A quota is counted in full
only when it is made or says something else.

upstream: pkg/controller/resourcequota/resource_quota_controller.go:syncResourceQuota
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from fairlead.api.json import Json
from fairlead.api.quantity import canonical, parse_quantity
from fairlead.apiserver.admission.quota.amounts import Amounts, add, amounts, subtract
from fairlead.apiserver.admission.quota.usage import is_counted, is_in_scopes, usage
from fairlead.apiserver.kind import RESOURCE_QUOTA, Kind
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import ChangeType, StorageChange
from fairlead.engine.core.instant import Instant
from fairlead.worlds.local.field_manager import controllers_write

Name = tuple[str, str]  # resource, name


@dataclass(slots=True)
class _Ledger:
    """What the objects of a namespace use of one quota, each and in all."""

    spec: Json
    shares: dict[Name, Amounts] = field(default_factory=dict)
    total: Amounts = field(default_factory=dict)

    @property
    def hard(self) -> Json:
        """How much there may be, as it was written."""
        hard: Json = self.spec.get("hard") or {}
        return hard

    def put(self, kind: Kind, obj: Json | None, name: str) -> bool:
        """Count the newest version of an object, None when it is gone; whether anything changes."""
        key = (kind.resource, name)
        before = self.shares.pop(key, {})
        after = {} if obj is None else self._share(kind, obj)
        if after:
            self.shares[key] = after
        if before == after:
            return False
        self.total = add(subtract(self.total, before), after)
        return True

    def status(self) -> Json:
        """What the quota's status should say."""
        zero = parse_quantity("0")
        used = {name: canonical(self.total.get(name, zero)) for name in self.hard}
        hard = {name: canonical(amount) for name, amount in amounts(self.hard).items()}
        return {"hard": hard, "used": used}

    def _share(self, kind: Kind, obj: Json) -> Amounts:
        names = [name for name in self.hard if is_counted(kind, name)]
        if not names or not is_in_scopes(kind, obj, self.spec):
            return {}
        used = usage(kind, obj)
        return {name: used[name] for name in names if name in used}


class Quotas:
    """Sees to all quotas."""

    def __init__(self) -> None:
        """Nothing is counted before the first quota."""
        self._ledgers: dict[str, dict[str, _Ledger]] = {}  # by namespace and name

    def attend(self, change: StorageChange, store: Store, now: Instant) -> None:
        """See Attendant."""
        meta = change.object["metadata"]
        namespace, name = meta.get("namespace", ""), meta["name"]
        is_gone = change.type is ChangeType.DELETED
        if change.kind is RESOURCE_QUOTA:
            if is_gone:
                self._ledgers.get(namespace, {}).pop(name, None)
            else:
                self._see_quota(change.object, store, now)
        current = None if is_gone else change.object
        for quota, ledger in self._ledgers.get(namespace, {}).items():
            if ledger.put(change.kind, current, name):
                _write(store, namespace, quota, ledger, now)

    def _see_quota(self, quota: Json, store: Store, now: Instant) -> None:
        """Count everything where it is new or changed; its status alone is admission's business."""
        meta, spec = quota["metadata"], quota.get("spec") or {}
        ledgers = self._ledgers.setdefault(meta["namespace"], {})
        known = ledgers.get(meta["name"])
        if known is not None and known.spec == spec:
            return
        ledger = ledgers[meta["name"]] = _Ledger(spec)
        for kind, obj in _objects(store, meta["namespace"]):
            ledger.put(kind, obj, obj["metadata"]["name"])
        _write(store, meta["namespace"], meta["name"], ledger, now)


def _objects(store: Store, namespace: str) -> Iterable[tuple[Kind, Json]]:
    for kind in store.storage.kinds():
        if kind.namespaced:
            for obj in store.list(kind, namespace):
                yield kind, obj


def _write(store: Store, namespace: str, name: str, ledger: _Ledger, now: Instant) -> None:
    quota = store.find(RESOURCE_QUOTA, namespace, name)
    if quota is None:
        return
    before, after = quota.get("status") or {}, ledger.status()
    fields = {
        part: after[part] | {one: None for one in before.get(part) or {} if one not in after[part]}
        for part in ("hard", "used")
    }
    write = controllers_write(RESOURCE_QUOTA, "status", now)
    store.patch_status(RESOURCE_QUOTA, namespace, name, fields, now, write=write)
