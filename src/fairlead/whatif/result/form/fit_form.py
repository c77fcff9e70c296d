"""The forms of the answers of `fairlead fit`."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Struct, UnsetType

from fairlead.whatif.result.form.answer_form import AnswerForm, about


class FitStopForm(Struct, forbid_unknown_fields=True):
    """Why no further pod fits."""

    by: Annotated[
        str,
        about(
            "what refuses the next pod: `admission`, `scheduling`, `kubelet`, `autoscaler`, "
            "`error` (a scheduling cycle fails), or `limit` (`--max-limit` is reached)"
        ),
    ]
    message: Annotated[str, about("the message of the refusal")]


class BreachForm(Struct, forbid_unknown_fields=True):
    """A PodDisruptionBudget that does not allow all preemptions of its pods."""

    budget: Annotated[str, about("the PodDisruptionBudget")]
    evicted: Annotated[int, about("number of preempted pods that the budget covers")]
    allowed: Annotated[int, about("number of disruptions that the budget allows")]


class FitRefusalForm(Struct, kw_only=True, forbid_unknown_fields=True):
    """A reason why nodes refuse the next pod, or why pods wait."""

    reason: Annotated[str, about("the reason")]
    plugin: Annotated[
        str | UnsetType, about("the plugin that refuses the next pod; not with `--autoscale`")
    ] = UNSET
    nodes: Annotated[
        int | UnsetType, about("number of nodes with this reason; not with `--autoscale`")
    ] = UNSET
    change: Annotated[
        str | UnsetType,
        about('a change with which the pod would fit, or `""`; not with `--autoscale`'),
    ] = UNSET
    pods: Annotated[
        int | UnsetType, about("number of pods with this reason; only with `--autoscale`")
    ] = UNSET
    workload: Annotated[
        str | UnsetType, about("the workload of these pods; only with `--autoscale`")
    ] = UNSET


class FitNodeForm(Struct, forbid_unknown_fields=True):
    """A node on which new pods fit, and their number."""

    node: Annotated[str, about("the node")]
    zone: Annotated[str, about('the zone of the node, or `""`')]
    pods: Annotated[int, about("number of new pods on the node")]


class VictimForm(Struct, forbid_unknown_fields=True):
    """A pod that new pods preempt."""

    pod: Annotated[str, about("the preempted pod")]
    priority: Annotated[int, about("the priority of the preempted pod")]


class FitGroupForm(Struct, forbid_unknown_fields=True):
    """A node group or NodePool of the autoscaler."""

    group: Annotated[str, about("the node group or NodePool")]
    type: Annotated[str, about('the instance type, or `""`')]
    before: Annotated[int, about("number of nodes before the new pods are created")]
    after: Annotated[int, about("number of nodes at the end")]
    max: Annotated[int | None, about("maximum number of nodes; `null` without a maximum")]


class FitForm(AnswerForm, kw_only=True, tag="Fit"):
    """`fairlead fit`: how many more pods of a workload fit."""

    pod: Annotated[str, about("the workload or pod whose pods are counted")]
    namespace: Annotated[str, about("the namespace of the pods")]
    count: Annotated[int, about("number of further pods that fit")]
    replicas_today: Annotated[
        int | None,
        about(
            "present number of replicas; `null` if there is none, for example with `--pod` or for"
            " a Job"
        ),
    ]
    stop: Annotated[FitStopForm, about("why no further pod fits")]
    preempted_without_node: Annotated[
        int,
        about(
            "number of preempted pods that have no node at the end. Without `--autoscale`, these "
            "are victims of pods that were already pending; with `--autoscale`, they are victims "
            "of new pods"
        ),
    ]
    breached_budgets: Annotated[list[BreachForm], about("budgets that preemptions breach")]
    refusals: Annotated[
        list[FitRefusalForm],
        about("why the next pod fits on no node; with `--autoscale`, why pods have no node"),
    ]
    victims: Annotated[list[VictimForm], about("pods that new pods preempt")]
    nodes: Annotated[
        list[FitNodeForm] | UnsetType, about("nodes with new pods; not with `--autoscale`")
    ] = UNSET
    fits_by_preemption: Annotated[
        bool | UnsetType,
        about("`true` if the next pod would fit by preemption; not with `--autoscale`"),
    ] = UNSET
    waiting_placed_first: Annotated[
        int | UnsetType,
        about(
            "number of pods that were already pending and were placed before the new "
            "pods; not with `--autoscale`"
        ),
    ] = UNSET
    waiting_without_node: Annotated[
        int | UnsetType,
        about("number of pods that were already pending and found no node; not with `--autoscale`"),
    ] = UNSET
    preempted_by_waiting: Annotated[
        int | UnsetType,
        about("number of victims of pods that were already pending; not with `--autoscale`"),
    ] = UNSET
    autoscaler: Annotated[
        str | UnsetType,
        about("`cluster-autoscaler` or `karpenter`; only with `--autoscale`"),
    ] = UNSET
    nodes_added: Annotated[
        int | UnsetType, about("number of added nodes; only with `--autoscale`")
    ] = UNSET
    nodes_after: Annotated[
        int | UnsetType, about("number of nodes at the end; only with `--autoscale`")
    ] = UNSET
    cost_per_hour: Annotated[
        float | UnsetType | None,
        about("cost of the autoscaler's nodes at the end, if known; only with `--autoscale`"),
    ] = UNSET
    cost_is_estimated: Annotated[
        bool | UnsetType,
        about("`true` if a price is estimated; only with `--autoscale`"),
    ] = UNSET
    preempted: Annotated[
        int | UnsetType, about("number of preempted pods; only with `--autoscale`")
    ] = UNSET
    ready_after_s: Annotated[
        float | UnsetType,
        about(
            "time from the start of the simulation until the last new pod is on a "
            "node; only with `--autoscale`"
        ),
    ] = UNSET
    groups: Annotated[
        list[FitGroupForm] | UnsetType,
        about("the node groups or NodePools; only with `--autoscale`"),
    ] = UNSET


class GangRefusalForm(Struct, forbid_unknown_fields=True):
    """A reason why nodes refuse a pod of the next copy."""

    plugin: Annotated[str, about("the plugin that refuses the pod")]
    reason: Annotated[str, about("the reason")]
    nodes: Annotated[int, about("number of nodes with this reason")]


class GangFitForm(AnswerForm, kw_only=True, tag="GangFit"):
    """`fairlead fit` about a Volcano Job or a JobSet: how many whole copies fit."""

    object: Annotated[str, about("the Volcano Job or JobSet")]
    namespace: Annotated[str, about("the namespace of this object")]
    count: Annotated[int, about("number of further whole copies that fit")]
    pods_each: Annotated[int, about("number of pods of a copy")]
    placed_of_next: Annotated[int, about("number of pods of the next copy for which there is room")]
    small_domains: Annotated[
        list[str],
        about(
            "topology domains that the scheduler chose although they have too little room for the"
            " copy"
        ),
    ]
    stop: Annotated[FitStopForm, about("why no further copy fits")]
    waiting_placed_first: Annotated[
        int, about("number of pods that were already pending and were placed before the new pods")
    ]
    waiting_without_node: Annotated[
        int, about("number of pods that were already pending and found no node")
    ]
    refusals: Annotated[list[GangRefusalForm], about("why the next pod fits on no node")]
    nodes: Annotated[list[FitNodeForm], about("nodes with new pods")]
