"""The forms of the explanations of pods, workloads, nodes, budgets and autoscalers."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Struct, UnsetType

from fairlead.whatif.result.form.answer_form import AnswerForm, NextStepForm, about
from fairlead.whatif.result.form.group_form import (
    GroupExplanationForm,
    StartTimeForm,
    StartTimesBasisForm,
)


class PodReasonForm(Struct, forbid_unknown_fields=True):
    """Pods of a workload that are pending, or not ready, for the same reason."""

    pods: Annotated[int, about("number of pods with this reason")]
    pod: Annotated[str, about("the first of these pods, and the number of other pods")]
    why: Annotated[str, about("the reason")]


class PendingWorkloadForm(Struct, forbid_unknown_fields=True):
    """A workload with pods that are pending for the same reason."""

    workload: Annotated[str, about("the workload")]
    pods: Annotated[int, about("number of pods of the workload with this reason")]
    pod: Annotated[str, about("the first of these pods, and the number of other pods")]
    why: Annotated[str, about("the reason")]
    longest_s: Annotated[float | None, about("age of the oldest of these pods, if known")]


class PendingReasonForm(Struct, forbid_unknown_fields=True):
    """A reason why pods are pending, with the pods of all workloads."""

    workloads: Annotated[int, about("number of workloads with pending pods for this reason")]
    workload: Annotated[
        str, about("the workload with the most of these pods, and the number of other workloads")
    ]
    pods: Annotated[int, about("number of pods with this reason")]
    pod: Annotated[str, about("the first of these pods, and the number of other pods")]
    why: Annotated[str, about("the reason")]
    longest_s: Annotated[float | None, about("age of the oldest of these pods, if known")]


class UnreadyWorkloadForm(Struct, forbid_unknown_fields=True):
    """A workload, and a reason why pods of the workload that have a node are not ready."""

    workload: Annotated[str, about("the workload")]
    pods: Annotated[int, about("number of pods of the workload with this reason")]
    pod: Annotated[str, about("the first of these pods, and the number of other pods")]
    why: Annotated[str, about("the reason")]


class UnreadyReasonForm(Struct, forbid_unknown_fields=True):
    """A reason why pods that have a node are not ready; the pods of all workloads are counted."""

    workloads: Annotated[
        int, about("number of workloads with pods that are not ready for this reason")
    ]
    workload: Annotated[
        str, about("the workload with the most of these pods, and the number of other workloads")
    ]
    pods: Annotated[int, about("number of pods with this reason")]
    pod: Annotated[str, about("the first of these pods, and the number of other pods")]
    why: Annotated[str, about("the reason")]


class UncreatedForm(Struct, forbid_unknown_fields=True):
    """A workload that has fewer pods than it wants."""

    pods: Annotated[int, about("number of missing pods")]
    workload: Annotated[str, about("the workload")]
    since_s: Annotated[float | None, about("for how long the pods have been missing, if known")]
    why: Annotated[str, about("why the pods are not created")]


class OutOfServiceForm(Struct, forbid_unknown_fields=True):
    """A node that takes no new pods."""

    node: Annotated[str, about("the node")]
    zone: Annotated[str, about('the zone of the node, or `""`')]
    pods: Annotated[int, about("number of pods on the node")]
    since_s: Annotated[float | None, about("for how long the node has taken no new pods, if known")]
    why: Annotated[str, about("the reason")]


class OutOfServiceReasonForm(Struct, forbid_unknown_fields=True):
    """A reason why nodes take no new pods."""

    nodes: Annotated[int, about("number of nodes with this reason")]
    node: Annotated[str, about("the first of these nodes, and the number of other nodes")]
    zone: Annotated[str, about("the zones of these nodes as text")]
    pods: Annotated[int, about("number of pods on these nodes")]
    since_s: Annotated[
        float | None,
        about("the longest time for which one of these nodes has taken no new pods, if known"),
    ]
    why: Annotated[str, about("the reason")]


class PodsExplanationForm(AnswerForm, kw_only=True, tag="PodsExplanation"):
    """`fairlead explain pods`: which pods are pending or not ready."""

    next_steps: Annotated[list[NextStepForm], about("what to do next")]
    pods: Annotated[int, about("number of pods that have not ended")]
    pending_pods: Annotated[int, about("number of pending pods")]
    unready_pods: Annotated[int, about("number of pods that have a node, but are not ready")]
    uncreated_pods: Annotated[
        int, about("number of pods that workloads want but that do not exist")
    ]
    pending_reasons: Annotated[list[PendingReasonForm], about("why pods are pending, by reason")]
    unready_reasons: Annotated[list[UnreadyReasonForm], about("why pods are not ready, by reason")]
    node_reasons: Annotated[
        list[OutOfServiceReasonForm], about("why nodes take no new pods, by reason")
    ]
    pending: Annotated[list[PendingWorkloadForm], about("the pending pods, by workload")]
    uncreated: Annotated[list[UncreatedForm], about("workloads with missing pods")]
    unready: Annotated[list[UnreadyWorkloadForm], about("the unready pods, by workload")]
    nodes: Annotated[list[OutOfServiceForm], about("the nodes that take no new pods")]


class ReturningNodeForm(Struct, forbid_unknown_fields=True):
    """A node that takes no new pods, and the pods that it could run after its return."""

    node: Annotated[str, about("the node")]
    zone: Annotated[str, about('the zone of the node, or `""`')]
    pods: Annotated[int, about("number of pods on the node")]
    since_s: Annotated[float | None, about("for how long the node has taken no new pods, if known")]
    why: Annotated[str, about("the reason")]
    room_for: Annotated[
        int | None,
        about(
            "number of pending pods that would run if the node returned to service; `null` if not"
            " counted"
        ),
    ]


class ReturningReasonForm(Struct, forbid_unknown_fields=True):
    """A reason why nodes take no new pods, and the pods that these nodes could otherwise run."""

    nodes: Annotated[int, about("number of nodes with this reason")]
    node: Annotated[str, about("the first of these nodes, and the number of other nodes")]
    zone: Annotated[str, about("the zones of these nodes as text")]
    pods: Annotated[int, about("number of pods on these nodes")]
    since_s: Annotated[
        float | None,
        about("the longest time for which one of these nodes has taken no new pods, if known"),
    ]
    why: Annotated[str, about("the reason")]
    room_for: Annotated[
        int | None,
        about(
            "number of pending pods that would run if these nodes returned to service; `null` if "
            "not counted"
        ),
    ]


class ServingNodeForm(Struct, forbid_unknown_fields=True):
    """A node that takes new pods, and its free resources."""

    node: Annotated[str, about("the node")]
    zone: Annotated[str, about('the zone of the node, or `""`')]
    pool: Annotated[str, about('the node pool of the node, or `""`')]
    ready_s: Annotated[float | None, about("for how long the node has been ready, if known")]
    pods: Annotated[int, about("number of pods on the node")]
    allowed_pods: Annotated[int, about("largest number of pods that the node may have")]
    requested: Annotated[dict[str, int], about("requests of the node's pods, by resource")]
    allocatable: Annotated[dict[str, int], about("allocatable amounts, by resource")]
    free: Annotated[dict[str, int], about("allocatable minus requested amounts, by resource")]
    pods_words: Annotated[str, about("`pods` and `allowed_pods` as text")]
    cpu_words: Annotated[str, about("requested and allocatable cpu as text")]
    cpu_free: Annotated[str, about("free cpu as text")]
    memory_words: Annotated[str, about("requested and allocatable memory as text")]
    memory_free: Annotated[str, about("free memory as text")]
    devices_free: Annotated[str, about("free extended resources as text")]
    room_for: Annotated[
        int | None,
        about("number of pending pods for which the node has room; `null` if no pod is pending"),
    ]
    taints: Annotated[str, about("the node's taints as text, without PreferNoSchedule")]


class ServingPoolForm(Struct, forbid_unknown_fields=True):
    """Nodes that take new pods and have the same node pool and taints."""

    nodes: Annotated[int, about("number of nodes")]
    node: Annotated[str, about("the first of these nodes, and the number of other nodes")]
    zone: Annotated[str, about("the zones of these nodes as text")]
    pool: Annotated[str, about('the node pool, or `""`')]
    pods: Annotated[int, about("number of pods on these nodes")]
    allowed_pods: Annotated[int, about("largest number of pods that these nodes may have together")]
    requested: Annotated[dict[str, int], about("requests of the pods on these nodes, by resource")]
    allocatable: Annotated[dict[str, int], about("allocatable amounts, by resource")]
    free: Annotated[dict[str, int], about("allocatable minus requested amounts, by resource")]
    pods_words: Annotated[str, about("`pods` and `allowed_pods` as text")]
    cpu_words: Annotated[str, about("requested and allocatable cpu as text")]
    cpu_free: Annotated[str, about("free cpu as text")]
    memory_words: Annotated[str, about("requested and allocatable memory as text")]
    memory_free: Annotated[str, about("free memory as text")]
    devices_free: Annotated[str, about("free extended resources as text")]
    cpu_most: Annotated[str, about("the most free cpu of one node, as text")]
    memory_most: Annotated[str, about("the most free memory of one node, as text")]
    room_for: Annotated[
        int | None,
        about(
            "number of pending pods for which these nodes have room; `null` if no pod is pending"
        ),
    ]
    taints: Annotated[str, about("the taints of these nodes as text, without PreferNoSchedule")]


class NodesExplanationForm(AnswerForm, kw_only=True, tag="NodesExplanation"):
    """`fairlead explain nodes`: which nodes take new pods, and what is free on them."""

    nodes: Annotated[int, about("number of nodes")]
    virtual_nodes: Annotated[
        list[str], about("the virtual nodes in service, which the tables leave out")
    ]
    pending_pods: Annotated[int, about("number of pending pods")]
    node_reasons: Annotated[
        list[ReturningReasonForm], about("why nodes take no new pods, by reason")
    ]
    out_of_service: Annotated[list[ReturningNodeForm], about("the nodes that take no new pods")]
    pools: Annotated[list[ServingPoolForm], about("the nodes in service, by pool and taints")]
    in_service: Annotated[list[ServingNodeForm], about("the nodes in service")]


class NodeBlockerForm(Struct, forbid_unknown_fields=True):
    """Something that blocks the drain of the explained node: a pod, or the node itself."""

    pod: Annotated[str, about('the pod that blocks the drain; `""` for the node itself')]
    pending: Annotated[
        int | None,
        about(
            "number of pods of this pod's workload, including this pod, that fit on no other node "
            "after the drain; `null` if the reason is not missing room"
        ),
    ]
    owner: Annotated[str, about("the object to change")]
    cause: Annotated[str, about("the kind of the reason")]
    why: Annotated[str, about("the reason")]
    edit: Annotated[str, about('a command or change that removes the reason, or `""`')]


class EditForm(Struct, forbid_unknown_fields=True):
    """A change that would help, as a command or in words."""

    edit: Annotated[str, about("the command or change")]


class RemovalCheckForm(Struct, forbid_unknown_fields=True):
    """Something that keeps an autoscaler from removing the explained node."""

    of: Annotated[str, about("the pods or the object to which `why` applies, as text")]
    pods: Annotated[list[str], about("the pods in `of`")]
    why: Annotated[str, about("why an autoscaler does not remove the node")]
    keeps: Annotated[str, about("the autoscalers that keep the node for this reason")]
    drain: Annotated[str, about("what `kubectl drain` does in this case")]
    edits: Annotated[list[str], about("changes with which the autoscaler could remove the node")]


class NodePodForm(Struct, forbid_unknown_fields=True):
    """A pod on the explained node."""

    pod: Annotated[str, about("the pod")]
    workload: Annotated[str, about("the pod's workload")]
    priority: Annotated[int, about("the pod's priority")]
    cpu: Annotated[str, about("the cpu that the pod requests, as text")]
    memory: Annotated[str, about("the memory that the pod requests, as text")]
    leaves: Annotated[str, about("whether the pod leaves in a drain, in words")]
    drained_to: Annotated[
        str | None, about("the node of the pod's replacement after a drain, or `null`")
    ]


class NodeExplanationForm(AnswerForm, kw_only=True, tag="NodeExplanation"):
    """`fairlead explain node/NAME`: whether a node can be drained, and what runs on it."""

    node: Annotated[str, about("the node")]
    can_be_drained: Annotated[bool, about("`true` if nothing blocks the drain of the node")]
    blockers: Annotated[list[NodeBlockerForm], about("what blocks the drain of the node")]
    edits: Annotated[list[EditForm], about("changes that would help to drain the node")]
    removal: Annotated[
        list[RemovalCheckForm], about("what keeps autoscalers from removing the node")
    ]
    pods: Annotated[list[NodePodForm], about("the pods on the node")]


class RefusalForm(Struct, forbid_unknown_fields=True):
    """A reason why nodes refuse one more pod of the workload."""

    nodes: Annotated[int, about("number of nodes with this reason")]
    plugin: Annotated[str, about("the plugin that refuses the pod")]
    reason: Annotated[str, about("the reason")]
    change: Annotated[str, about('a change with which the pod would fit, or `""`')]


class ZonePodsForm(Struct, forbid_unknown_fields=True):
    """How many of the workload's pods are in a zone."""

    zone: Annotated[str, about("the zone, `no zone`, or `node is missing`")]
    nodes: Annotated[int, about("number of nodes in the zone that run pods of the workload")]
    pods: Annotated[int, about("number of pods of the workload in the zone")]
    ready: Annotated[int, about("number of ready pods")]


class WorkloadBudgetForm(Struct, forbid_unknown_fields=True):
    """A PodDisruptionBudget that selects the workload's pods."""

    budget: Annotated[str, about("the PodDisruptionBudget")]
    rule: Annotated[str, about("the rule of the budget, such as `minAvailable 1`")]
    ready: Annotated[int, about("number of healthy pods that the budget selects")]
    needed: Annotated[int, about("number of healthy pods that the budget requires")]
    allowed: Annotated[int, about("number of disruptions that the budget allows now")]


class JobStateForm(Struct, forbid_unknown_fields=True):
    """A Job that the workload created, with the numbers of its pods."""

    job: Annotated[str, about("the Job")]
    wanted: Annotated[int, about("number of pods that the Job wants")]
    ready: Annotated[int, about("number of ready pods")]
    pending: Annotated[int, about("number of pods without a node")]


class WorkloadExplanationForm(AnswerForm, kw_only=True, tag="WorkloadExplanation"):
    """`fairlead explain deploy/NAMESPACE/NAME`, and explanations of other workloads."""

    next_steps: Annotated[list[NextStepForm], about("what to do next")]
    workload: Annotated[str, about("the workload")]
    wanted: Annotated[int, about("number of pods that the workload wants")]
    pods: Annotated[int, about("number of pods of the workload")]
    ready: Annotated[int, about("number of ready pods of the workload")]
    one_more_goes_to: Annotated[
        str, about('the node on which one more pod would be placed; `""` if no node fits')
    ]
    one_more_equals: Annotated[
        int, about("number of nodes with the highest score for one more pod")
    ]
    one_more_preempts: Annotated[list[str], about("pods that one more pod would preempt")]
    schedule: Annotated[str | UnsetType, about("schedule of a CronJob; only for CronJobs")] = UNSET
    time_zone: Annotated[
        str | UnsetType, about("the time zone of the schedule; only for CronJobs")
    ] = UNSET
    suspended: Annotated[
        bool | UnsetType, about("`true` if the CronJob is suspended; only for CronJobs")
    ] = UNSET
    next_run: Annotated[
        str | UnsetType | None, about("when the next Job is due, or `null`; only for CronJobs")
    ] = UNSET
    jobs: Annotated[
        list[JobStateForm] | UnsetType,
        about("the Jobs of the workload; only for workloads that create Jobs"),
    ] = UNSET
    pending: Annotated[list[PodReasonForm], about("the pending pods of the workload, by reason")]
    unready: Annotated[
        list[PodReasonForm], about("the pods of the workload that are not ready, by reason")
    ]
    refusals: Annotated[list[RefusalForm], about("why nodes refuse one more pod")]
    zones: Annotated[list[ZonePodsForm], about("the zones of the workload's pods")]
    budgets: Annotated[list[WorkloadBudgetForm], about("the disruption budgets of the workload")]
    groups: Annotated[
        list[GroupExplanationForm] | UnsetType,
        about(
            "why the workload's pod groups wait; only if pending pods belong to a batch scheduler"
        ),
    ] = UNSET
    start_times: Annotated[
        list[StartTimeForm] | UnsetType,
        about("estimated start times; only with `--seeds` or `--runtimes`"),
    ] = UNSET
    start_times_basis: Annotated[
        StartTimesBasisForm | UnsetType | None,
        about("how the start times were estimated; only with `--seeds` or `--runtimes`"),
    ] = UNSET


class BudgetWorkloadForm(Struct, forbid_unknown_fields=True):
    """A workload whose pods the explained budget selects."""

    workload: Annotated[str, about("the workload")]
    pods: Annotated[int, about("number of the workload's pods that the budget selects")]
    ready: Annotated[int, about("number of these pods that are ready")]
    nodes: Annotated[int, about("number of nodes with these pods")]


class UnreadyPodForm(Struct, forbid_unknown_fields=True):
    """A pod that the explained budget selects, and that is not ready."""

    pod: Annotated[str, about("the pod")]
    node: Annotated[str, about('the node of the pod, or `""`')]
    why: Annotated[str, about("why the pod is not ready")]


class BudgetNodeForm(Struct, forbid_unknown_fields=True):
    """A node with pods that the explained budget selects."""

    node: Annotated[str, about("the node")]
    pods: Annotated[int, about("number of selected pods on the node")]
    unplaced: Annotated[
        int, about("number of selected pods on the node whose replacement fits on no other node")
    ]
    drain: Annotated[str, about("how the budget treats a drain of the node, in words")]


class BudgetExplanationForm(AnswerForm, kw_only=True, tag="BudgetExplanation"):
    """`fairlead explain pdb/NAMESPACE/NAME`: which evictions a budget allows."""

    budget: Annotated[str, about("the PodDisruptionBudget")]
    rule: Annotated[str, about("the rule of the budget, such as `minAvailable 1`")]
    allowed: Annotated[int, about("number of disruptions that the budget allows now")]
    allowed_at_best: Annotated[
        int, about("number of disruptions that the budget allows when all wanted pods are ready")
    ]
    ready: Annotated[int, about("number of healthy pods that the budget selects")]
    needed: Annotated[int, about("number of healthy pods that the budget requires")]
    wanted: Annotated[int, about("number of pods that the workloads of the selected pods want")]
    edits: Annotated[
        list[EditForm], about("changes after which the budget would allow more evictions")
    ]
    workloads: Annotated[list[BudgetWorkloadForm], about("workloads of the selected pods")]
    unready: Annotated[list[UnreadyPodForm], about("selected pods that are not ready")]
    nodes: Annotated[list[BudgetNodeForm], about("nodes with selected pods")]


class MetricForm(Struct, forbid_unknown_fields=True):
    """A metric by which the HorizontalPodAutoscaler scales."""

    metric: Annotated[str, about("the metric")]
    current: Annotated[str, about('the current value in the autoscaler\'s status, or `""`')]
    target: Annotated[str, about('the target value, or `""`')]
    proposal: Annotated[int | None, about("number of replicas that the metric proposes, if known")]


class AutoscalerRefusalForm(Struct, forbid_unknown_fields=True):
    """A reason why nodes refuse the next pod of the autoscaler's target."""

    nodes: Annotated[int, about("number of nodes with this reason")]
    plugin: Annotated[str, about("the plugin that refuses the pod")]
    reason: Annotated[str, about("the reason")]


class ConditionForm(Struct, forbid_unknown_fields=True):
    """A condition in the HorizontalPodAutoscaler's status."""

    type: Annotated[str, about("the type")]
    status: Annotated[str, about("`True`, `False` or `Unknown`")]
    reason: Annotated[str, about("the reason")]
    message: Annotated[str, about("the message")]


class AutoscalerExplanationForm(AnswerForm, kw_only=True, tag="AutoscalerExplanation"):
    """`fairlead explain hpa/NAMESPACE/NAME`: what an autoscaler does, and why."""

    next_steps: Annotated[list[NextStepForm], about("what to do next")]
    autoscaler: Annotated[str, about("the HorizontalPodAutoscaler")]
    target: Annotated[str, about("the workload that the autoscaler scales")]
    replicas: Annotated[int, about("the present number of replicas")]
    proposal: Annotated[int | None, about("the highest proposal of a metric, if known")]
    min_replicas: Annotated[int, about("the minimum number of replicas")]
    max_replicas: Annotated[int, about("the maximum number of replicas")]
    fitting: Annotated[int | None, about("number of further pods that fit; `null` if not counted")]
    metrics: Annotated[list[MetricForm], about("the metrics of the autoscaler")]
    refusals: Annotated[list[AutoscalerRefusalForm], about("why nodes refuse the next pod")]
    conditions: Annotated[list[ConditionForm], about("the conditions in the autoscaler's status")]
