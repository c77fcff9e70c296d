"""PodCountRecorder: counts the pods of each priority, and samples the counts when they change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import pod_priority
from fairlead.engine.core.instant import Instant
from fairlead.whatif.outcome.run_outcome import PodCountSample
from fairlead.whatif.run.recorders.sample import samples_since

PENDING: Final = "pending"
RUNNING: Final = "running"
_DOWN: Final = "down"


class _Counts(Struct):
    """Numbers of pods of one priority.

    The `running` pods have a node that works, and the `down` pods have a node that does not work.
    `preempted` and `evicted` count all preemptions and evictions so far.
    """

    pending: int = 0
    running: int = 0
    down: int = 0
    preempted: int = 0
    evicted: int = 0


class PodCountRecorder(Struct):
    """Counts pods by priority. Each change of a count adds a sample."""

    samples: list[PodCountSample] = field(default_factory=list)
    _counts: dict[int, _Counts] = field(default_factory=dict)
    # While a snapshot is loaded: the priorities that must be sampled afterwards.
    _unsampled: dict[int, None] | None = None
    _down: set[str] = field(default_factory=set)  # uids; never iterated

    def begin_load(self) -> None:
        """Take no samples until `end_load`."""
        self._unsampled = {}

    def end_load(self, now: Instant) -> None:
        """Take one sample of each priority whose counts have changed since `begin_load`."""
        unsampled, self._unsampled = self._unsampled, None
        for priority in unsampled or ():
            self._sample(priority, self._counts_of(priority), now)

    def add(self, pod: Pod, state: str, now: Instant, *, is_serving: bool) -> None:
        """Count `pod` in `state`, which is `PENDING` or `RUNNING`.

        `is_serving` is True if the pod has no node, or if the node of the pod works.
        """
        if not is_serving:
            self._down.add(pod.metadata.uid)
        self.shift(pod_priority(pod), state if is_serving else _DOWN, +1, now)

    def remove(self, pod: Pod, state: str, now: Instant) -> None:
        """Stop counting `pod`; `state` is the state with which it was added."""
        is_down = pod.metadata.uid in self._down
        self._down.discard(pod.metadata.uid)
        self.shift(pod_priority(pod), _DOWN if is_down else state, -1, now)

    def node_changed(self, pods: Iterable[Pod], now: Instant, *, is_serving: bool) -> None:
        """Record that a node stopped or started working; `pods` are the `RUNNING` pods on it.

        `is_serving` is the new state.
        """
        moved = Counter[int]()  # {priority: pods whose state changes}
        for pod in pods:
            uid = pod.metadata.uid
            if (uid in self._down) == is_serving:
                (self._down.discard if is_serving else self._down.add)(uid)
                moved[pod_priority(pod)] += 1
        for priority, number in moved.items():
            counts = self._counts_of(priority)
            counts.running += number if is_serving else -number
            counts.down -= number if is_serving else -number
            self._sample(priority, counts, now)

    def shift(self, priority: int, state: str, by: int, now: Instant) -> None:
        """Add `by` to the number of pods of `priority` in `state`, and take a sample.

        `state` is `PENDING`, `RUNNING` (on a node that works) or `_DOWN`.
        """
        counts = self._counts_of(priority)
        setattr(counts, state, getattr(counts, state) + by)
        self._sample(priority, counts, now)

    def has_pending(self) -> bool:
        """Return whether a pod is pending."""
        return any(counts.pending for counts in self._counts.values())

    def preempted(self, priority: int, now: Instant) -> None:
        """Count one preempted pod of `priority`, and take a sample."""
        counts = self._counts_of(priority)
        counts.preempted += 1
        self._sample(priority, counts, now)

    def evicted(self, priority: int, now: Instant) -> None:
        """Count one evicted pod of `priority`, and take a sample."""
        counts = self._counts_of(priority)
        counts.evicted += 1
        self._sample(priority, counts, now)

    def samples_since(self, since: Instant) -> Iterator[PodCountSample]:
        """Yield the counts that held at `since`, and then all samples from `since` on.

        Preemptions and evictions before `since` are not counted.
        """
        earlier = {one.priority: one for one in self.samples if one.at < since}
        for one in samples_since(self.samples, since, lambda one: one.priority):
            before = earlier.get(one.priority)
            if before is None or not (before.preempted or before.evicted):
                yield one
                continue
            yield replace(
                one,
                preempted=one.preempted - before.preempted,
                evicted=one.evicted - before.evicted,
            )

    def _counts_of(self, priority: int) -> _Counts:
        found = self._counts.get(priority)
        if found is None:
            found = self._counts[priority] = _Counts()
        return found

    def _sample(self, priority: int, counts: _Counts, now: Instant) -> None:
        """Record the current `counts`; they replace a sample of the same instant and priority."""
        if self._unsampled is not None:
            self._unsampled[priority] = None
            return
        sample = PodCountSample(
            now,
            priority,
            counts.pending,
            counts.running,
            counts.down,
            counts.preempted,
            counts.evicted,
        )
        last = self.samples[-1] if self.samples else None
        if last is not None and last.at == now and last.priority == priority:
            self.samples[-1] = sample
        else:
            self.samples.append(sample)
