"""Decides the consequence of a pod's failure for its Job, by the Job's podFailurePolicy.

    Ignore      the failure does not count, and the pod is replaced
    Count       the failure counts; this is the default
    FailIndex   the pod's index fails
    FailJob     the Job fails

The first matching rule decides. A rule can match the condition DisruptionTarget. This condition
marks pods that were preempted, drained, or evicted from a failed node.

upstream: pkg/controller/job/pod_failure_policy.go:matchPodFailurePolicy
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from fairlead.api.objects import OnExitCodes, OnPodCondition, Pod, PodFailurePolicy


class Consequence(StrEnum):
    """The action of a pod failure policy rule."""

    IGNORE = "Ignore"
    COUNT = "Count"
    FAIL_INDEX = "FailIndex"
    FAIL_JOB = "FailJob"


class FailureDecision(Struct, frozen=True):
    """The consequence of a pod's failure.

    `message` is the message of the Job's condition if the consequence is that the Job fails.
    """

    consequence: Consequence
    message: str = ""


COUNTED = FailureDecision(Consequence.COUNT)


def match_policy(policy: PodFailurePolicy | None, pod: Pod) -> FailureDecision:
    """Return the decision of `policy` about the failed `pod`; by default, the failure counts."""
    for index, rule in enumerate(policy.rules if policy is not None else ()):
        if rule.on_exit_codes is not None:
            found = _exit_code(rule.on_exit_codes, pod)
        else:
            found = _condition(rule.on_pod_conditions, pod)
        if found:
            message = f"{found} matching {rule.action} rule at index {index}"
            return FailureDecision(Consequence(rule.action), message)
    return COUNTED


def _exit_code(wanted: OnExitCodes, pod: Pod) -> str:
    """Return a text about the first exit code of `pod` that matches `wanted`, or "".

    The message of the FailureDecision about `pod` begins with this text.
    """
    meta = pod.metadata
    for status in (*pod.status.container_statuses, *pod.status.init_container_statuses):
        ended = status.state.terminated
        code = ended.exit_code if ended is not None and ended.exit_code else None
        if code is None or wanted.container_name not in (None, status.name):
            continue
        if (code in wanted.values) == (wanted.operator == "In"):
            return (
                f"Container {status.name} for pod {meta.namespace}/{meta.name} "
                f"failed with exit code {code}"
            )
    return ""


def _condition(wanted: tuple[OnPodCondition, ...], pod: Pod) -> str:
    known = {(one.type, one.status) for one in pod.status.conditions}
    for one in wanted:
        if (one.type, one.status) in known:
            meta = pod.metadata
            return f"Pod {meta.namespace}/{meta.name} has condition {one.type}"
    return ""
