"""Defect: what kube-batch is known to do wrong, each by its name, each on its own switch.

A session asks `defects.has(Defect.X)` where the two behaviours part. Nothing is a defect only
because Fairlead would do it differently: that is what `engine.batch.rules` is for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final


class Defect(Enum):
    """What happens while the defect is there."""

    # A gang with too few pods is tried all the same, and holds room while it is.
    JOBVALID_NOOP = "jobvalid-noop"
    # A gang that does not fit keeps what it got until the session ends, against everybody.
    PARTIAL_HOLD = "partial-hold"
    # A queue stands in the order once per job, where its share at that time counts.
    QUEUE_DUP_HEAP = "queue-dup-heap"
    # Pods that ask for nothing make others leave.
    BESTEFFORT_PREEMPTOR = "besteffort-preemptor"
    # Reclaim serves one task of a job, and gives a queue up at the first failure.
    RECLAIM_ONE_TASK = "reclaim-one-task"
    # Victims alone must make the room; what is free or becoming free does not count.
    EVICT_IGNORES_IDLE = "evict-ignores-idle"
    # Reclaim evicts for gangs that cannot be completed.
    RECLAIM_NO_GANG = "reclaim-no-gang"
    # Reclaim evicts although the task fits somewhere as things are.
    RECLAIM_BEFORE_IDLE = "reclaim-before-idle"
    # Reclaim takes victims in no order.
    RECLAIM_VICTIM_ORDER = "reclaim-victim-order"
    # Preemption within jobs runs for all queues after each queue.
    PREEMPT_PHASE2 = "preempt-phase2"
    # Within a job, a task evicts one of higher priority; or none at all if jobs have priorities.
    INTRA_JOB_PRIORITY = "intra-job-priority"
    # Each victim is harmless for its gang, all of them together are not.
    GANG_VICTIMS_NOT_CUMULATIVE = "gang-victims-not-cumulative"
    # The last pod of a job with minMember 1 may be evicted: deliberate, and kept by default.
    GANG_MIN_ONE_EVICTABLE = "gang-min-one-evictable"
    # A queue is satisfied only once its request is exceeded in every dimension.
    PROPORTION_LESS = "proportion-less"
    # A candidate that is not chosen is subtracted from its queue all the same.
    PROPORTION_RECLAIM_SUB = "proportion-reclaim-sub"
    # The best node wins even if the task must wait there and need not elsewhere.
    PIPELINE_OVER_IDLE = "pipeline-over-idle"
    # Pods that ask for something only while they start are never scheduled.
    INIT_ONLY = "init-only"
    # A queue may pass its share by one task: without that small shares stay unused. Kept.
    OVERSHOOT = "overshoot"
    # spec.capability of queues is not looked at.
    CAPABILITY = "capability"
    # An empty answer of one plugin empties the answer of all lower tiers.
    TIER_CARRY = "tier-carry"
    # The first tier that names victims decides alone.
    TIER_FIRST_WINS = "tier-first-wins"
    # A queue that is above its share in one resource gives nothing back.
    RECLAIM_ALL_DIMS = "reclaim-all-dims"
    # Inter-pod affinity sees the placed pods of jobs only.
    AFFINITY_FOREIGN_POD = "affinity-foreign-pod"
    # "0 nodes are available", whatever the reason; and that again in every session.
    MUTE_FIT_ERROR = "mute-fit-error"


@dataclass(frozen=True, slots=True)
class BatchDefects:
    """The defects that are there."""

    present: frozenset[Defect]

    def has(self, defect: Defect) -> bool:
        """Whether `defect` is there."""
        return defect in self.present

    def without(self, corrected: Iterable[Defect]) -> BatchDefects:
        """The same but for `corrected`."""
        return BatchDefects(self.present.difference(corrected))


# Choices rather than mistakes: what speaks for each stands at its name above.
KEPT: Final = frozenset({Defect.GANG_MIN_ONE_EVICTABLE, Defect.OVERSHOOT})

UPSTREAM: Final = BatchDefects(frozenset(Defect))
FIXED: Final = BatchDefects(KEPT)
DEFECTS: Final = {"upstream": UPSTREAM, "fixed": FIXED}
