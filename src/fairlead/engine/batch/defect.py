"""Defect: kube-batch's known bugs, each with its own name and switch.

A session calls `defects.has(Defect.X)` at each place where the bug X changes its behaviour.
Conventions of kube-batch that are not bugs are in `engine.batch.rules`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final

from msgspec import Struct


class Defect(Enum):
    """A known bug. The comment of each member describes the behaviour if the bug is switched on."""

    # A gang with too few pods is tried anyway, and holds resources while it is tried.
    JOBVALID_NOOP = "jobvalid-noop"
    # A gang that does not fit keeps its resources until the session ends, which blocks other jobs.
    PARTIAL_HOLD = "partial-hold"
    # A queue is in the heap once per job, ordered by its share at the time of the push.
    QUEUE_DUP_HEAP = "queue-dup-heap"
    # Best-effort pods preempt other pods.
    BESTEFFORT_PREEMPTOR = "besteffort-preemptor"
    # Reclaim serves one task of a job, and drops the queue at the first failure.
    RECLAIM_ONE_TASK = "reclaim-one-task"
    # The victims alone must free enough resources; idle and releasing resources do not count.
    EVICT_IGNORES_IDLE = "evict-ignores-idle"
    # Reclaim evicts for gangs that cannot be completed.
    RECLAIM_NO_GANG = "reclaim-no-gang"
    # Reclaim evicts even if the task already fits somewhere.
    RECLAIM_BEFORE_IDLE = "reclaim-before-idle"
    # Reclaim takes victims in no particular order. This defect has no effect: Fairlead's order, the
    # least important first, is one of those that upstream may take.
    RECLAIM_VICTIM_ORDER = "reclaim-victim-order"
    # Phase 2 of preempt runs for all queues each time phase 1 has run for a queue.
    PREEMPT_PHASE2 = "preempt-phase2"
    # Within a job, a task can evict a task of higher priority. But if the plugin `priority` is
    # configured, no task can evict a task of its own job.
    INTRA_JOB_PRIORITY = "intra-job-priority"
    # Victims are checked one by one against the gang's minimum, not together.
    GANG_VICTIMS_NOT_CUMULATIVE = "gang-victims-not-cumulative"
    # The last pod of a job with minMember 1 may be evicted. Upstream does this on purpose, so it is
    # on by default.
    GANG_MIN_ONE_EVICTABLE = "gang-min-one-evictable"
    # A queue counts as satisfied only once its request is exceeded in every resource.
    PROPORTION_LESS = "proportion-less"
    # Reclaim subtracts a candidate from its queue's allocated amounts even if it is not chosen.
    PROPORTION_RECLAIM_SUB = "proportion-reclaim-sub"
    # The best node is chosen even if the task must wait there and could start on another.
    PIPELINE_OVER_IDLE = "pipeline-over-idle"
    # Pods of which only the init containers request resources are never scheduled.
    INIT_ONLY = "init-only"
    # A queue may exceed its share by one task; otherwise small shares stay unused. On by default.
    OVERSHOOT = "overshoot"
    # spec.capability of queues is ignored.
    CAPABILITY = "capability"
    # An empty result of one plugin makes the result of all lower tiers empty.
    TIER_CARRY = "tier-carry"
    # Only the first tier that returns victims counts.
    TIER_FIRST_WINS = "tier-first-wins"
    # A queue above its share in only one resource gives nothing back.
    RECLAIM_ALL_DIMS = "reclaim-all-dims"
    # Inter-pod affinity considers only the placed pods of jobs.
    AFFINITY_FOREIGN_POD = "affinity-foreign-pod"
    # The message is always "0 nodes are available", and is repeated in every session.
    MUTE_FIT_ERROR = "mute-fit-error"


class BatchDefects(Struct, frozen=True):
    """The set of kube-batch's bugs that are switched on."""

    present: frozenset[Defect]

    def has(self, defect: Defect) -> bool:
        """Return whether `defect` is switched on."""
        return defect in self.present

    def without(self, corrected: Iterable[Defect]) -> BatchDefects:
        """Return the defects that are not in `corrected`."""
        return BatchDefects(self.present.difference(corrected))


# Design choices, not bugs; the comments above give the reasons.
KEPT: Final = frozenset({Defect.GANG_MIN_ONE_EVICTABLE, Defect.OVERSHOOT})

UPSTREAM: Final = BatchDefects(frozenset(Defect))
FIXED: Final = BatchDefects(KEPT)
DEFECTS: Final = {"upstream": UPSTREAM, "fixed": FIXED}
