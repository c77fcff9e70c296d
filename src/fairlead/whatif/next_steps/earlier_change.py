"""Changes that a next step makes before the user's what-if makes nodes fail.

In a real cluster, such a change is too late if it is made only at the failure. New replicas may not
be ready when the pods of the failed nodes are evicted, or new replicas may be placed on the failed
nodes. The same is true for the new pods of an edited workload. So the step delays the failure by
EARLIER, except if the user's what-if has a delay of its own.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.outcome.assessment.next_step import NextStep

EARLIER: Final = "10m"
"""How long before the failure a suggested what-if makes its own change, as a value of --at."""


def with_later_failure(change: ClusterChange) -> ClusterChange:
    """Return `change` with its failure delayed by EARLIER, to leave time for an earlier change.

    If no nodes fail, or if `change` has a delay of its own, the result is `change` itself.
    """
    if not _can_be_delayed(change):
        return change
    return replace(change, failures=replace(change.failures, at=EARLIER))


def step_before_failure(step: NextStep, done: str, change: ClusterChange) -> NextStep:
    """Return the what-if `step` with the failure of the user's `change` delayed by EARLIER.

    `done` is a participle that says what the step does before the failure, such as "created".
    """
    if not _can_be_delayed(change):
        return step
    words = f"{step.words}, {done} {EARLIER} before the failure"
    return NextStep(words, f"{step.options} --at {EARLIER}")


def _can_be_delayed(change: ClusterChange) -> bool:
    """Return whether nodes fail, and the user's what-if has no delay of its own."""
    return change.failures.is_any and not change.failures.at
