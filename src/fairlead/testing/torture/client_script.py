"""ClientScript: the changes of a scenario, sent one by one as the requests of a client."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from fairlead.api.json import Json
from fairlead.api.nodes.kubelet_behaviour import KUBELET
from fairlead.api.timestamp import NANOSECONDS_PER_MILLISECOND
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import POD, Kind, find_kind
from fairlead.apiserver.registry.deletion import Deletion
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.registry.subresource.eviction import evict
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.engine.workloads.node_annotation import DRAIN
from fairlead.testing.torture.scenario import (
    Change,
    ClockJump,
    Create,
    Delete,
    DeleteAny,
    DeletePod,
    Patch,
    Restart,
    WatchCut,
)


class ProcessKilledError(Exception):
    """Raised when the control plane is killed; commands that are not performed yet are lost."""

    def __init__(self, at: Instant, down: DurationNs = 0) -> None:
        """The control plane is killed at `at` and starts again after `down` nanoseconds."""
        super().__init__("the process is killed")
        self.at = at
        self.down = down


class Target(Protocol):
    """The control plane to which a script sends its changes."""

    store: Store

    def cut(
        self, kinds: Iterable[str], now: Instant, duration: DurationNs, *, compacted: bool
    ) -> None:
        """Interrupt the watches of `kinds` for `duration`; see `FaultyWorld.cut`."""
        ...


class ClientScript:
    """The changes of a run, in order of time; the script survives restarts of the process."""

    def __init__(
        self,
        changes: Sequence[Change],
        start: Instant,
        tally: Counter[str],
        suspend: Callable[[Instant], None],
    ) -> None:
        """Prepare the changes of a run that starts at `start`.

        `tally` counts each change when it is performed. `suspend(until)` stops the process until
        that instant.
        """
        self._changes = sorted(changes, key=lambda one: one.at_ms)
        self._next = 0
        self._start = start
        self._tally = tally
        self._suspend = suspend

    def next_due(self) -> Instant | None:
        """Return the time at which the next change is due, or None if no change is left."""
        if self._next == len(self._changes):
            return None
        return self._start + self._changes[self._next].at_ms * NANOSECONDS_PER_MILLISECOND

    def perform_next(self, target: Target, now: Instant) -> bool:
        """Perform the next change and return True, or return False if no change is due.

        Also returns True if the server refuses the change; the change is not repeated. Raises
        ProcessKilledError if the change is a restart.
        """
        due = self.next_due()
        if due is None or due > now:
            return False
        change = self._changes[self._next]
        self._next += 1
        self._tally["changes"] += 1
        self._tally[f"change {change_name(change)}"] += 1
        match change:
            case Restart(down_ms=down_ms):
                raise ProcessKilledError(now, down_ms * NANOSECONDS_PER_MILLISECOND)
            case ClockJump(by_ms=by_ms):
                self._suspend(now + by_ms * NANOSECONDS_PER_MILLISECOND)
            case WatchCut(kinds=kinds, for_ms=for_ms, is_compacted=compacted):
                target.cut(kinds, now, for_ms * NANOSECONDS_PER_MILLISECOND, compacted=compacted)
            case _:
                try:
                    _request(change, target.store, now)
                except ApiError:
                    self._tally["refused changes"] += 1
        return True


def change_name(change: Change) -> str:
    """Return the name under which a change is counted in reports."""
    match change:
        case Patch(kind="Node", patch=patch):
            return _node_change_name(patch)
        case Patch(kind=kind):
            return f"{kind.partition('.')[0]} changed"
        case Create(manifest=manifest):
            return f"{manifest['kind']} created"
        case Delete(kind=kind) | DeleteAny(kind=kind):
            return f"{kind.partition('.')[0]} deleted"
        case DeletePod(evicts=evicts):
            return "pod evicted" if evicts else "pod deleted"
        case WatchCut(is_compacted=is_compacted):
            return f"watch cut and {'compacted' if is_compacted else 'stale'}"
        case _:
            return "clock jump" if isinstance(change, ClockJump) else "process restarted"


def _node_change_name(patch: Json) -> str:
    annotations = patch.get("metadata", {}).get("annotations", {})
    if KUBELET in annotations:
        return f"Node's kubelet: {annotations[KUBELET].partition(' ')[0]}"
    if DRAIN in annotations:
        return "Node drained" if annotations[DRAIN] else "Node's drain ended"
    if "status" in patch:
        return "Node resized"
    return "Node tainted" if "taints" in patch["spec"] else "Node cordoned"


def _request(
    change: Create | Patch | Delete | DeletePod | DeleteAny, store: Store, now: Instant
) -> None:
    match change:
        case Create(manifest=manifest):
            store.create(manifest, now)
        case Patch(kind=kind, name=name, patch=patch, namespace=namespace, is_status=True):
            store.patch_status(_kind(kind), namespace, name, patch["status"], now)
        case Patch(kind=kind, name=name, patch=patch, namespace=namespace):
            store.patch(_kind(kind), namespace, name, patch, now)
        case Delete(kind=kind, name=name, namespace=namespace, policy=policy):
            store.delete(_kind(kind), namespace, name, now, Deletion(policy=policy))
        case DeleteAny(kind=kind, nth=nth, has_label=label):
            found = [one["metadata"] for one in store.list(_kind(kind))]
            found = [one for one in found if not label or label in one.get("labels", {})]
            if found:
                name = found[nth % len(found)]["name"]
                store.delete(_kind(kind), "", name, now, Deletion())
        case DeletePod(nth=nth, grace_s=grace_s, evicts=evicts):
            pods = store.list(POD)
            if pods:
                _end_pod(pods[nth % len(pods)], store, now, grace_s, evicts=evicts)


def _end_pod(pod: Json, store: Store, now: Instant, grace_s: int | None, *, evicts: bool) -> None:
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    if evicts:
        evict(store, namespace, name, now, grace_period_s=grace_s)
    else:
        store.delete(POD, namespace, name, now, Deletion(grace_period_s=grace_s))


def _kind(name: str) -> Kind:
    kind = find_kind(name)
    assert kind is not None, name
    return kind
