"""What the failure of a pod means for its Job.

    Ignore      nothing; the pod is made again
    Count       one failure more, which is what happens without a policy
    FailIndex   the pod's index is given up
    FailJob     the Job is given up

The first rule that fits decides. A pod evicted from a dead node, preempted or drained has the
condition DisruptionTarget, so that a rule can tell it from one that failed by itself.

upstream: pkg/controller/job/pod_failure_policy.go:matchPodFailurePolicy
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fairlead.api.objects import ContainerStatus, OnExitCodes, OnPodCondition, Pod, PodFailurePolicy


class Consequence(StrEnum):
    """An action of a rule."""

    IGNORE = "Ignore"
    COUNT = "Count"
    FAIL_INDEX = "FailIndex"
    FAIL_JOB = "FailJob"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What follows from a failure; `message` is what a Job that it ends is told."""

    consequence: Consequence
    message: str = ""


COUNTED = Judgement(Consequence.COUNT)


def judge(policy: PodFailurePolicy | None, pod: Pod) -> Judgement:
    """What `policy` says of the failed `pod`."""
    for place, rule in enumerate(policy.rules if policy is not None else ()):
        if rule.on_exit_codes is not None:
            found = _exit_code(rule.on_exit_codes, pod)
        else:
            found = _condition(rule.on_pod_conditions, pod)
        if found:
            message = f"{found} matching {rule.action} rule at index {place}"
            return Judgement(Consequence(rule.action), message)
    return COUNTED


def _exit_code(wanted: OnExitCodes, pod: Pod) -> str:
    """The beginning of the message if a container ended as `wanted`, "" if none did."""
    meta = pod.metadata
    for status in (*pod.status.container_statuses, *pod.status.init_container_statuses):
        code = _failure(status)
        if code is None or wanted.container_name not in (None, status.name):
            continue
        if (code in wanted.values) == (wanted.operator == "In"):
            return (
                f"Container {status.name} for pod {meta.namespace}/{meta.name} "
                f"failed with exit code {code}"
            )
    return ""


def _failure(status: ContainerStatus) -> int | None:
    ended = status.state.terminated
    return ended.exit_code if ended is not None and ended.exit_code else None


def _condition(wanted: tuple[OnPodCondition, ...], pod: Pod) -> str:
    known = {(one.type, one.status) for one in pod.status.conditions}
    for one in wanted:
        if (one.type, one.status) in known:
            meta = pod.metadata
            return f"Pod {meta.namespace}/{meta.name} has condition {one.type}"
    return ""
