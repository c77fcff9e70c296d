"""How a namespace ends: its pods go first, then all else, and when nothing is left it goes itself.

It is looked at five seconds after it was changed, and again when those who take their time should
be through. What is left, and what holds it, stands in the namespace's conditions.

upstream: pkg/controller/namespace/namespace_controller.go,
pkg/controller/namespace/deletion/namespaced_resources_deleter.go, status_condition_utils.go
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp, parse_timestamp
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import NAMESPACE, POD, Kind
from fairlead.apiserver.registry.deletion import Deletion
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import ChangeType, StorageChange
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.worlds.local.field_manager import controllers_write

# upstream: namespace_controller.go:namespaceDeletionGracePeriod
SETTLING: Final[DurationNs] = seconds(5)
FINALIZERS_TAKE_S: Final = 15
_REMAINING: Final = "NamespaceContentRemaining"
_HELD: Final = "NamespaceFinalizersRemaining"
# Each condition's reason and message where there is nothing to complain of.
_FINE: Final = {
    "NamespaceDeletionDiscoveryFailure": (
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    _REMAINING: ("ContentRemoved", "All content successfully removed"),
    _HELD: ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


@dataclass(slots=True)
class _Left:
    """What is left of a namespace: how many of each kind, how many each finalizer holds."""

    by_kind: Counter[str] = field(default_factory=Counter)
    by_finalizer: Counter[str] = field(default_factory=Counter)
    estimate_s: int = 0


class NamespaceEnds:
    """Empties the namespaces that are to go, and lets them go."""

    def __init__(self) -> None:
        """None is to go."""
        self._due: dict[str, Instant] = {}
        self._timers: TimerQueue[str] = TimerQueue()

    def attend(self, change: StorageChange, store: Store, now: Instant) -> None:
        """See Attendant."""
        if change.kind is not NAMESPACE:
            return
        name = change.object["metadata"]["name"]
        if change.type is ChangeType.DELETED:
            self._due.pop(name, None)
        elif change.object["metadata"].get("deletionTimestamp"):
            self._await(name, now + SETTLING)

    def next_due(self) -> Instant | None:
        """When the next namespace is to be looked at."""
        return self._timers.next_due()

    def act(self, store: Store, now: Instant) -> None:
        """Look at those whose time has come."""
        for name in self._timers.pop_due(now):
            if self._due.get(name, now + 1) <= now:
                del self._due[name]
                self._look_at(name, store, now)

    def _await(self, name: str, due: Instant) -> None:
        """Look at it at `due`, if not before."""
        if due < self._due.get(name, due + 1):
            self._due[name] = due
            self._timers.add(due, name)

    def _look_at(self, name: str, store: Store, now: Instant) -> None:
        namespace = store.find(NAMESPACE, "", name)
        if namespace is None or not namespace["spec"].get("finalizers"):
            return
        begun = parse_timestamp(namespace["metadata"]["deletionTimestamp"])
        left = _emptied([POD], name, begun, store, now)
        if left.by_kind:
            # Upstream does not tell of them: it counts when there are none.
            _tell(namespace, _Left(), store, now)
        else:
            kinds = [kind for kind in store.storage.kinds() if kind.namespaced]
            left = _emptied(kinds, name, begun, store, now)
            _tell(namespace, left, store, now)
        if left.by_kind:
            self._await(name, now + seconds(left.estimate_s // 2 + 1))
        else:
            _let_go(name, store)


def _emptied(
    kinds: Iterable[Kind], namespace: str, begun: Instant, store: Store, now: Instant
) -> _Left:
    """Delete all objects of `kinds`; what is left of them."""
    left = _Left()
    for kind in kinds:
        estimate_s = _grace_s(store, namespace, begun, now) if kind is POD else 0
        for obj in store.list(kind, namespace):
            with suppress(ApiError):  # gone with what went before it
                deletion = Deletion(policy="Background")
                store.delete(kind, namespace, obj["metadata"]["name"], now, deletion)
        there = store.list(kind, namespace)
        finalizers = Counter(
            finalizer for obj in there for finalizer in obj["metadata"].get("finalizers") or ()
        )
        if there:
            left.by_kind[f"{kind.plural}.{kind.group}"] += len(there)
            left.by_finalizer += finalizers
            estimate_s = estimate_s or (FINALIZERS_TAKE_S if finalizers else 0)
            left.estimate_s = max(left.estimate_s, estimate_s)
    return left


def _grace_s(store: Store, namespace: str, begun: Instant, now: Instant) -> int:
    """How long the namespace's pods may take, 0 when that is over."""
    graces = [
        pod["spec"].get("terminationGracePeriodSeconds") or 0
        for pod in store.list(POD, namespace)
        if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
    ]
    longest = max(graces, default=0)
    return longest if now < begun + seconds(longest) else 0


def _tell(namespace: Json, left: _Left, store: Store, now: Instant) -> None:
    """Write into the conditions what is left, where that is news."""
    told = dict(_FINE)
    if left.by_kind:
        listed = sorted(f"{kind} has {n} resource instances" for kind, n in left.by_kind.items())
        message = f"Some resources are remaining: {', '.join(listed)}"
        told[_REMAINING] = ("SomeResourcesRemain", message)
    if left.by_finalizer:
        held = sorted(f"{one} in {n} resource instances" for one, n in left.by_finalizer.items())
        message = f"Some content in the namespace has finalizers remaining: {', '.join(held)}"
        told[_HELD] = ("SomeFinalizersRemain", message)
    before = namespace.get("status", {}).get("conditions") or []
    after = [*before]
    for kind, (reason, message) in told.items():
        _put(after, kind, reason, message, now)
    if after != before:
        name = namespace["metadata"]["name"]
        write = controllers_write(NAMESPACE, "status", now)
        store.patch_status(NAMESPACE, "", name, {"conditions": after}, now, write=write)


def _put(conditions: list[Json], kind: str, reason: str, message: str, now: Instant) -> None:
    status = "False" if _FINE[kind] == (reason, message) else "True"
    place = next((at for at, row in enumerate(conditions) if row["type"] == kind), len(conditions))
    known = conditions[place] if place < len(conditions) else {}
    since = known.get("lastTransitionTime") if known.get("status") == status else None
    row = {
        "type": kind,
        "status": status,
        "lastTransitionTime": since or format_timestamp(now),
        "reason": reason,
        "message": message,
    }
    conditions[place : place + 1] = [row]


def _let_go(name: str, store: Store) -> None:
    current = store.find(NAMESPACE, "", name)
    if current is None:
        return
    left = [one for one in current["spec"]["finalizers"] if one != "kubernetes"]
    spec = {key: value for key, value in current["spec"].items() if key != "finalizers"}
    store.commit(NAMESPACE, current, {**current, "spec": {**spec, **_listed(left)}})


def _listed(finalizers: list[str]) -> Json:
    return {"finalizers": finalizers} if finalizers else {}
