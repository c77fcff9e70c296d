"""Waits for a condition in a cluster by advancing its clock from one due event to the next.

If clients watch the cluster, each step first waits a short real time. In this time, the clients can
react to changes. Before a long step, this wait is longer (the patience). Otherwise, the clock would
skip minutes while an operator computes. The wait is longest when no event is due, because then only
the clients can make progress.

A change ends the wait without a step, and the condition is checked again. Changes of Leases do not
count: a client with leader election renews its Lease every few seconds of real time, and so would
end most long waits. If other objects change again and again, the clock advances after
CHANGING_S_MAX.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, TypeVar

from fairlead.api.json import Json
from fairlead.apiserver.kind import Kind
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.testing.cluster.cluster_thread import ClusterThread
from fairlead.worlds.local.server.runner import Runner

REACTION_S: Final = 0.02
PATIENCE_S_DEFAULT: Final = 3.0
LAST_PATIENCE_S: Final = 10.0
CHANGING_S_MAX: Final = 30.0
LONG: Final[DurationNs] = seconds(10)
_LEASES: Final = "leases.coordination.k8s.io"
_POLL_S: Final = 0.01

Found = TypeVar("Found")


class ConditionWaiter:
    """Waits for conditions in the cluster of `thread`."""

    def __init__(
        self, thread: ClusterThread, patience_s: float, changing_s_max: float = CHANGING_S_MAX
    ) -> None:
        """Wait at most `changing_s_max` real seconds before a step, however much clients change."""
        self._thread = thread
        self._cluster = thread.cluster
        self._patience_s = patience_s
        self._changing_s_max = changing_s_max

    def wait(self, check: Callable[[], Found], limit: Instant) -> Found:
        """Advance the clock until `check` returns a true value or `limit` is reached.

        Returns the last value of `check`.
        """
        last_step: float | None = None
        while True:
            found = check()
            if found or self._cluster.clock.now() >= limit:
                return found
            step = partial(self._step, limit=limit, last_step=last_step)
            last_step = self._thread.call(step)

    async def _step(self, runner: Runner, *, limit: Instant, last_step: float | None) -> float:
        """Advance the clock to the next due event, or to `limit` if that is earlier.

        `last_step` is the time of the event loop when the clock was last advanced, or None before
        the first step. Returns the new value of `last_step`. The clock does not advance if work
        that is due now changes the store, or if a client changes the store while this method waits
        for clients. But if the clock has not advanced for `changing_s_max` real seconds, this
        method advances the clock in any case.
        """
        loop, before = asyncio.get_running_loop(), self._cluster.store.version
        if last_step is None:
            last_step = loop.time()
        is_overdue = loop.time() - last_step >= self._changing_s_max
        await runner.advance(0)  # the effects of requests come before time passes
        if self._cluster.store.version != before and not is_overdue:
            return last_step
        due = runner.next_due()
        then = limit if due is None else min(due, limit)
        wait = wait_s(runner.clock.now(), due, limit, self._patience_s)
        if not is_overdue and await self._change(wait):
            return last_step
        await runner.advance(max(0, then - runner.clock.now()))
        return loop.time()

    def until_watched(self, kind: Kind, patience_s: float) -> bool:
        """Wait up to `patience_s` real seconds for a watch of `kind`; return whether one exists."""
        return self._thread.call(lambda _: self._watched(kind, patience_s))

    async def _watched(self, kind: Kind, patience_s: float) -> bool:
        loop, watches = asyncio.get_running_loop(), self._cluster.server.watches
        end = loop.time() + patience_s
        while loop.time() < end:
            if watches.count(kind):
                return True
            await asyncio.sleep(_POLL_S)
        return False

    async def _change(self, patience_s: float) -> bool:
        """Wait up to `patience_s` real seconds until an object other than a Lease changes.

        Returns whether an object changed. Returns False immediately if no client watches the
        cluster.
        """
        if not self._cluster.server.watches.count():
            return False
        changed = asyncio.Event()
        unsubscribe = self._cluster.store.storage.subscribe(
            lambda _change: changed.set(), concerns=lambda resource: resource != _LEASES
        )
        try:
            await asyncio.wait_for(changed.wait(), patience_s)
        except TimeoutError:
            return False
        finally:
            unsubscribe()
        return True


def wait_s(now: Instant, due: Instant | None, limit: Instant, patience_s: float) -> float:
    """Return how many real seconds to wait for clients before the clock advances.

    `due` is the time of the next event, or None. If `due` is None or after `limit`, the wait is the
    longer of `patience_s` and LAST_PATIENCE_S. Otherwise the clock advances to `due`. The wait
    before an advance of LONG or more is `patience_s`. The wait before a smaller advance is the
    shorter of `patience_s` and REACTION_S.
    """
    if due is None or due > limit:
        return max(patience_s, LAST_PATIENCE_S)
    return patience_s if due - now >= LONG else min(patience_s, REACTION_S)


def node_of(pod: Json) -> str:
    """Return the name of the node to which the pod is bound, or "" if it is not bound."""
    return str(pod.get("spec", {}).get("nodeName", ""))


def is_ready(pod: Json) -> bool:
    """Return whether the pod is running and ready."""
    conditions = {c["type"]: c["status"] for c in _conditions(pod)}
    return pod["status"].get("phase") == "Running" and conditions.get("Ready") == "True"


def is_waiting(pod: Json) -> bool:
    """Return whether the pod has no node yet, is not terminating and has not finished."""
    finished = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return not (node_of(pod) or finished or "deletionTimestamp" in pod["metadata"])


def why_unschedulable(pod: Json) -> str:
    """Return the scheduler's message if the pod is unschedulable, else ""."""
    said = (c for c in _conditions(pod) if c.get("reason") == "Unschedulable")
    return next((str(condition.get("message", "")) for condition in said), "")


def is_evicted(pod: Json | None, uid: str) -> bool:
    """Return whether a pod is terminating, has failed or no longer exists.

    `uid` is the pod's uid. `pod` is the object that now has the pod's name, or None.
    """
    if pod is None or pod["metadata"]["uid"] != uid:
        return True
    return "deletionTimestamp" in pod["metadata"] or pod.get("status", {}).get("phase") == "Failed"


def status_text(pod: Json | None) -> str:
    """Return the status of a pod in one line."""
    return "there is no such pod" if pod is None else ", ".join(_parts(pod))


def deletion_text(obj: Json | None) -> str:
    """Return a text that says whether `obj` was deleted, and which finalizers keep it."""
    meta = (obj or {}).get("metadata", {})
    if "deletionTimestamp" not in meta:
        return "it was not deleted"
    kept = ", ".join(meta.get("finalizers", ()))
    return f"is terminating, kept by finalizers {kept}" if kept else "is terminating"


def _parts(pod: Json) -> Iterator[str]:
    yield pod.get("status", {}).get("phase", "Pending")
    if node_of(pod):
        yield f"on {node_of(pod)}"
    if pod["metadata"].get("deletionTimestamp"):
        yield "is terminating"
    for condition in _conditions(pod):
        if condition.get("status") != "True" and condition.get("message"):
            yield f"{condition.get('reason', condition['type'])}: {condition['message']}"


def _conditions(pod: Json) -> list[Json]:
    return list(pod.get("status", {}).get("conditions", ()))
