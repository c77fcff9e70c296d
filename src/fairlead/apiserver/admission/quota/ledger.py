"""QuotaLedgers: the usage of each ResourceQuota, updated as objects are created and deleted.

All objects in a namespace are counted when the status of a quota is first requested, and again
after the quota's spec has changed. Between such counts, each change of an object updates the usage.

upstream: pkg/controller/resourcequota/resource_quota_controller.go:syncResourceQuota
"""

from __future__ import annotations

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.api.quantity import canonical, parse_quantity
from fairlead.apiserver.admission.quota.amounts import Amounts, add, amounts, subtract
from fairlead.apiserver.admission.quota.usage import (
    counted_until,
    is_counted,
    is_in_scopes,
    usage,
)
from fairlead.apiserver.kind import RESOURCE_QUOTA, Kind
from fairlead.apiserver.storage.storage import ChangeType, Storage, StoredChange

Name = tuple[str, str]  # (plural resource, object name)


class _Ledger(Struct):
    """The usage of one quota: the amounts of each object (`used_by`), and their `total`.

    `ends` maps each terminating pod to a time (ns since 1970). After this time, the quota counts
    only the pod itself (`count/pods`), not the pod's resources.
    """

    spec: Json
    used_by: dict[Name, Amounts] = field(default_factory=dict)
    total: Amounts = field(default_factory=dict)
    ends: dict[Name, int] = field(default_factory=dict)

    @property
    def hard(self) -> Json:
        """The limits in the quota's spec."""
        hard: Json = self.spec.get("hard") or {}
        return hard

    def put(self, kind: Kind, obj: Json | None, name: str) -> None:
        """Count `obj` in place of the earlier version of the object `name`.

        If `obj` is None, the object was deleted, and is no longer counted.
        """
        key = (kind.resource, name)
        after = {} if obj is None else self._usage(kind, obj)
        self._replace(key, after)
        end = counted_until(kind, obj) if obj is not None and after else None
        if end is None:
            self.ends.pop(key, None)
        else:
            self.ends[key] = end

    def status(self, now: int) -> Json:
        """Return the status of the quota at `now` (ns since 1970): `hard` and `used`."""
        for key in [key for key, end in self.ends.items() if end < now]:
            del self.ends[key]
            number = f"count/{key[0]}"
            self._replace(
                key, {name: used for name, used in self.used_by[key].items() if name == number}
            )
        zero = parse_quantity("0")
        used = {name: canonical(self.total.get(name, zero)) for name in self.hard}
        hard = {name: canonical(amount) for name, amount in amounts(self.hard).items()}
        return {"hard": hard, "used": used}

    def _replace(self, key: Name, after: Amounts) -> None:
        before = self.used_by.pop(key, {})
        if after:
            self.used_by[key] = after
        if before != after:
            self.total = add(subtract(self.total, before), after)

    def _usage(self, kind: Kind, obj: Json) -> Amounts:
        names = [name for name in self.hard if is_counted(kind, name)]
        if not names or not is_in_scopes(kind, obj, self.spec):
            return {}
        used = usage(kind, obj)
        return {name: used[name] for name in names if name in used}


class QuotaLedgers:
    """Counts the usage of quotas, and updates it at every change in `storage`."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._ledgers: dict[str, dict[str, _Ledger]] = {}  # by namespace and name

    def are_counted(self, namespace: str) -> bool:
        """Return whether changes in `namespace` are counted.

        The changes are counted after the first call of `status` for a quota in the namespace.
        """
        return bool(self._ledgers.get(namespace))

    def status(self, namespace: str, name: str, now: int) -> Json | None:
        """Return the status (`hard` and `used`) of the quota `name` at `now` (ns since 1970).

        Return None if the quota does not exist.
        """
        quota = self._storage.find(RESOURCE_QUOTA, namespace, name)
        if quota is None:
            return None
        spec = quota.get("spec") or {}
        if not self._ledgers:
            self._storage.subscribe(self._count)
        ledgers = self._ledgers.setdefault(namespace, {})
        ledger = ledgers.get(name)
        if ledger is None or ledger.spec != spec:
            ledger = ledgers[name] = self._counted(namespace, spec)
        return ledger.status(now)

    def _counted(self, namespace: str, spec: Json) -> _Ledger:
        ledger = _Ledger(spec)
        for kind in self._storage.kinds():
            if kind.namespaced and any(is_counted(kind, name) for name in ledger.hard):
                for obj in self._storage.items(kind, namespace):
                    ledger.put(kind, obj, obj["metadata"]["name"])
        return ledger

    def _count(self, change: StoredChange) -> None:
        namespace, name = change.key
        ledgers = self._ledgers.get(namespace)
        if not ledgers:
            return
        is_deleted = change.type is ChangeType.DELETED
        if is_deleted and change.kind is RESOURCE_QUOTA:
            ledgers.pop(name, None)
        for ledger in ledgers.values():
            ledger.put(change.kind, None if is_deleted else change.object, name)
