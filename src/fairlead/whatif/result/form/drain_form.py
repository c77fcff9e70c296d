"""The rows that the answers about drained nodes share, and the form of each of these answers.

The answers about drained nodes are those of `fairlead drain-plan`, `upgrade-check` and
`consolidate`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Struct, UnsetType, field

from fairlead.whatif.result.form.answer_form import AnswerForm, NextStepForm, about


class BlockerForm(Struct, forbid_unknown_fields=True):
    """An object that blocks drains of nodes, with the reason."""

    owner: Annotated[
        str,
        about(
            "the object to change, such as `pdb/shop/web`; `the node itself` if the objects to "
            "change are several nodes"
        ),
    ]
    cause: Annotated[str, about("the kind of the reason")]
    why: Annotated[str, about("the reason")]
    where: Annotated[str, about("`on` as text")]
    nodes: Annotated[int, about("number of nodes in `on`")]
    workloads: Annotated[list[str], about("the workloads of the pods")]
    of: Annotated[str, about('`workloads` as text; `""` if `owner` is the only workload')]
    pods: Annotated[list[str], about('the pods; `""` stands for the node itself')]
    on: Annotated[list[str], about("the blocked nodes")]
    edit: Annotated[str, about('a command or change that removes the reason, or `""`')]
    helps: Annotated[list[str], about("the nodes that `edit` helps to drain")]


class DrainEditForm(Struct, forbid_unknown_fields=True):
    """A change that helps to drain nodes."""

    edit: Annotated[str, about("the command or change")]
    helps: Annotated[list[str], about("the nodes that the change helps to drain")]
    instead: Annotated[
        list[str],
        about(
            "further nodes that the change could help instead of the nodes in `helps`, because "
            "pods of these nodes could take the same room"
        ),
    ]
    alone: Annotated[list[str], about("nodes that can be drained after this change alone")]
    help_words: Annotated[str, about("`helps` and `instead` as text")] = field(name="for")


class BlockedNodeForm(Struct, forbid_unknown_fields=True):
    """A node that cannot be drained, and what blocks its drain."""

    node: Annotated[str, about("the node")]
    owners: Annotated[list[str], about("the objects that block the node")]


class PaceForm(Struct, forbid_unknown_fields=True):
    """The result of a simulation that drains a certain number of nodes at once."""

    at_once: Annotated[int, about("number of nodes that are drained at once")]
    takes_s: Annotated[float | None, about("how long the drains take; `null` if they never end")]
    evicted: Annotated[int, about("number of evictions")]
    evicted_again: Annotated[int, about("number of evictions of pods that replace evicted pods")]
    waited: Annotated[int, about("number of pods whose eviction a budget refused at first")]
    stopped: Annotated[list[str], about("workloads that had no ready pod for a time")]
    stops: Annotated[int, about("number of workloads in `stopped`")]
    pending: Annotated[list[str], about("pods that have no node at the end")]
    pending_negative: Annotated[
        list[str], about("pods with a negative priority that have no node at the end")
    ]
    uncreated: Annotated[
        dict[str, int], about("number of pods that are not created again, by workload")
    ]
    failed_jobs: Annotated[list[str], about("Jobs that fail or can no longer succeed")]
    lost: Annotated[list[str], about("pods on other nodes that are gone for good")]
    unfinished: Annotated[list[str], about("nodes that are never empty, or never return")]
    held_up_by: Annotated[list[str], about("budgets that refuse evictions until the end")]
    safe: Annotated[bool, about("`true` if the drains are safe at this pace")]
    result: Annotated[str, about("`safe`, or why the drains are not safe")]


class UnplacedPodForm(Struct, forbid_unknown_fields=True):
    """A pod that has no node at the end of a simulation of the drains."""

    pod: Annotated[str, about("the pod")]
    why: Annotated[str, about("the scheduler's reason")]


class BudgetWaitForm(Struct, forbid_unknown_fields=True):
    """A PodDisruptionBudget that refused evictions at first, so that drains had to wait."""

    budget: Annotated[str, about("the PodDisruptionBudget")]
    pods: Annotated[int, about("number of pods in `names`")]
    names: Annotated[list[str], about("pods whose eviction the budget refused at first")]


class NodeTimeForm(Struct, forbid_unknown_fields=True):
    """When a node's drain begins, and how long the drain and the node's absence take."""

    node: Annotated[str, about("the node")]
    begins_s: Annotated[float | None, about("when the drain begins; `null` if it never begins")]
    empty_after_s: Annotated[
        float | None, about("how long the drain takes; `null` if it does not end")
    ]
    back_after_s: Annotated[
        float | None,
        about(
            "time from the beginning of the drain until the node is back; `null` if the node does"
            " not return"
        ),
    ]


class DownPodsForm(Struct, forbid_unknown_fields=True):
    """Pods of a workload that do not run until their drained nodes are back."""

    workload: Annotated[str, about("the workload")]
    count: Annotated[int, about("number of pods")]
    pods: Annotated[list[str], about("the pods")]
    on: Annotated[list[str], about("the node of each pod")]
    down_s: Annotated[float | None, about("the longest time for which a pod is down, if known")]
    where: Annotated[str, about("`on` as text")]
    why: Annotated[str, about("why no other node takes the pods")]


class WorkloadStopForm(Struct, forbid_unknown_fields=True):
    """A workload that has no ready pod for a time because its nodes are drained."""

    workload: Annotated[str, about("the workload")]
    wanted: Annotated[int, about("number of pods that the workload wants")]
    stopped_s: Annotated[
        float | None, about("how long no pod is ready; `null` if none is ready at the end")
    ]
    on: Annotated[list[str], about("the drained nodes with pods of the workload")]
    why: Annotated[str, about("why no pod is ready")]
    edit: Annotated[str, about('a command or action that would prevent this, or `""`')]


class DrainStepForm(Struct, forbid_unknown_fields=True):
    """A step of the plan: a node to drain, and the effects of its drain."""

    step: Annotated[int, about("number of the step, from 1")]
    node: Annotated[str, about("the node")]
    pods: Annotated[int, about("number of pods that leave the node")]
    lost: Annotated[list[str], about("pods that nothing replaces")]
    waits: Annotated[list[str], about("pods that fit on no other node")]
    preempts: Annotated[list[str], about("pods in `waits` that can get another node by preemption")]
    pending_negative: Annotated[
        list[str],
        about("evicted or preempted pods with a negative priority that fit on no other node"),
    ]
    budgets: Annotated[list[str], about("the budgets against which evictions from the node count")]
    limited: Annotated[int, about("number of evictions that count against a budget")]


class PodMoveForm(Struct, forbid_unknown_fields=True):
    """A pod that is evicted, and the node on which its replacement runs."""

    pod: Annotated[str, about("the pod")]
    origin: Annotated[str, about("the node of the pod")] = field(name="from")
    target: Annotated[
        str, about("the node of the pod's replacement, which can be the same node")
    ] = field(name="to")


class DrainPlanForm(AnswerForm, kw_only=True, tag="DrainPlan"):
    """`fairlead drain-plan --nodes`: in which order nodes can be drained."""

    next_steps: Annotated[list[NextStepForm], about("the commands that carry out the plan")]
    nodes: Annotated[list[str], about("the nodes to drain")]
    drainable: Annotated[int, about("number of nodes that can be drained")]
    blocked: Annotated[list[str], about("nodes that cannot be drained")]
    drainable_alone: Annotated[
        list[str], about("blocked nodes that could be drained if no other node were drained")
    ]
    left_out: Annotated[dict[str, str], about("nodes that are not drained, with the reasons")]
    at_once: Annotated[
        int | None,
        about("number of nodes that can safely be drained at once; `null` if no number is safe"),
    ]
    takes_s: Annotated[
        float | None,
        about(
            "how long the drains take with `at_once` nodes at once; `null` if `at_once` is `null`"
        ),
    ]
    kubectl_flags: Annotated[
        dict[str, list[str]], about("flags that `kubectl drain` needs, and the pods that need them")
    ]
    blockers: Annotated[list[BlockerForm], about("what blocks drains")]
    edits: Annotated[
        list[DrainEditForm], about("changes that would help to drain the blocked nodes")
    ]
    blocked_nodes: Annotated[
        list[BlockedNodeForm],
        about("the blocked nodes; empty if the texts in `blockers` name all of them"),
    ]
    paces: Annotated[
        list[PaceForm], about("simulations of the drains, with different numbers of nodes at once")
    ]
    stopped: Annotated[
        list[WorkloadStopForm] | UnsetType,
        about("workloads that have no ready pod for a time; only if no pace is safe"),
    ] = UNSET
    pending: Annotated[
        list[UnplacedPodForm], about("pods without a node at the end of a simulation")
    ]
    budget_waits: Annotated[list[BudgetWaitForm], about("budgets that refuse evictions at first")]
    node_times: Annotated[list[NodeTimeForm], about("the times of the drains")]
    waits: Annotated[list[DownPodsForm], about("pods that wait until their nodes are back")]
    order: Annotated[list[DrainStepForm], about("the nodes, in the order of their drains")]
    moves: Annotated[list[PodMoveForm], about("where the pods go")]


class SingleDrainForm(Struct, forbid_unknown_fields=True):
    """Whether a node can be drained while all other nodes stay in service."""

    node: Annotated[str, about("the node")]
    drainable: Annotated[
        Literal["yes", "no"], about("`yes` or `no`: whether the node can be drained alone")
    ]
    pods: Annotated[int | None, about("number of pods that leave; `null` for a blocked node")]
    limited: Annotated[
        int | None,
        about("number of evictions that count against a budget; `null` for a blocked node"),
    ]
    why: Annotated[str, about("where the pods go, or what blocks the drain")]
    first: Annotated[list[str], about("workloads whose pods must be evicted first, in this order")]
    lost: Annotated[list[str], about("pods that nothing replaces")]
    waits: Annotated[list[str], about("pods that fit on no other node")]
    pending_negative: Annotated[
        list[str],
        about("evicted or preempted pods with a negative priority that fit on no other node"),
    ]
    failing_jobs: Annotated[list[str], about("Jobs that fail because of the drain")]
    refused: Annotated[
        dict[str, str],
        about("pods whose replacements the API server would refuse, with the reasons"),
    ]


class SingleDrainsForm(AnswerForm, kw_only=True, tag="SingleDrains"):
    """`fairlead drain-plan` without `--nodes`: which nodes can be drained alone."""

    drainable: Annotated[int, about("number of nodes that can be drained alone")]
    blocked: Annotated[list[str], about("nodes that cannot be drained")]
    left_out: Annotated[dict[str, str], about("nodes that are not checked, with the reasons")]
    kubectl_flags: Annotated[
        dict[str, list[str]], about("flags that `kubectl drain` needs, and the pods that need them")
    ]
    nodes: Annotated[list[SingleDrainForm], about("the nodes")]
    blockers: Annotated[list[BlockerForm], about("what blocks drains")]
    edits: Annotated[
        list[DrainEditForm], about("changes that would help to drain the blocked nodes")
    ]


class NeverForm(Struct, forbid_unknown_fields=True):
    """A PodDisruptionBudget that never allows an eviction."""

    pdb: Annotated[str, about("the PodDisruptionBudget")]
    rule: Annotated[str, about("the rule of the budget, such as `maxUnavailable 0`")]
    wanted: Annotated[int, about("number of pods that the workloads of the budget's pods want")]
    problem: Annotated[
        str, about('the error that keeps the budget from allowing evictions, or `""`')
    ]


class UpgradeCheckForm(AnswerForm, kw_only=True, tag="UpgradeCheck"):
    """`fairlead upgrade-check`: whether an upgrade can drain all nodes, and how long it takes."""

    nodes: Annotated[int, about("number of nodes to upgrade")]
    drainable: Annotated[int, about("number of nodes that can be drained")]
    blocked: Annotated[list[str], about("nodes that cannot be drained")]
    left_out: Annotated[dict[str, str], about("nodes that are not drained, with the reasons")]
    surge: Annotated[int, about("number of surge nodes at a time")]
    at_once: Annotated[
        int | None, about("number of nodes drained at once; `null` if no node can be drained")
    ]
    takes_s: Annotated[float | None, about("how long the upgrade takes; `null` if it never ends")]
    kubectl_flags: Annotated[
        dict[str, list[str]], about("flags that `kubectl drain` needs, and the pods that need them")
    ]
    blockers: Annotated[list[BlockerForm], about("what blocks drains")]
    edits: Annotated[
        list[DrainEditForm], about("changes that would help to drain the blocked nodes")
    ]
    blocked_nodes: Annotated[
        list[BlockedNodeForm],
        about("the blocked nodes; empty if the texts in `blockers` name all of them"),
    ]
    stopped: Annotated[list[WorkloadStopForm], about("workloads that have no ready pod for a time")]
    waits: Annotated[list[DownPodsForm], about("pods that wait until their nodes are back")]
    paces: Annotated[
        list[PaceForm],
        about(
            "the simulation of the upgrade; if a faster pace was tried, also the simulation of the "
            "faster pace"
        ),
    ]
    pending: Annotated[
        list[UnplacedPodForm], about("pods without a node at the end of a simulation")
    ]
    never: Annotated[list[NeverForm], about("budgets that never allow an eviction")]
    budget_waits: Annotated[list[BudgetWaitForm], about("budgets that refuse evictions at first")]
    node_times: Annotated[list[NodeTimeForm], about("the times of the drains")]


class TooManyForm(Struct, forbid_unknown_fields=True):
    """A plan that removes more nodes, but whose drains would not be safe."""

    nodes: Annotated[int, about("number of nodes that the larger plan removes")]
    why: Annotated[str, about("why the drains of the larger plan are not safe")]


class KeepCauseForm(Struct, forbid_unknown_fields=True):
    """A kind of reason for which nodes cannot be removed."""

    cause: Annotated[str, about("the kind of the reason")]
    nodes: Annotated[int, about("number of nodes that have to stay for this reason")]
    alone: Annotated[int, about("number of nodes that have to stay for this reason alone")]


class StayingForm(Struct, forbid_unknown_fields=True):
    """Nodes that cannot be removed, all for the same reason."""

    where: Annotated[str, about("`on` as text")]
    on: Annotated[list[str], about("the nodes")]
    owner: Annotated[str, about('a workload whose pods cannot run on other nodes, or `""`')]
    why: Annotated[str, about("why the pods cannot run on other nodes")]


class RemovalForm(Struct, forbid_unknown_fields=True):
    """A node that the plan removes."""

    step: Annotated[int, about("number of the step, from 1")]
    node: Annotated[str, about("the node")]
    type: Annotated[str, about('the instance type of the node, or `""`')]
    price: Annotated[float | None, about("the price of the node per hour, if known")]
    pods: Annotated[int, about("number of pods that move")]
    lost: Annotated[list[str], about("pods that nothing replaces")]
    gone: Annotated[int, about("number of pods in `lost`")]


class WaitingGangForm(Struct, forbid_unknown_fields=True):
    """A gang with waiting pods, for which the plan keeps room on the remaining nodes."""

    workload: Annotated[str, about("the workload of the pods")]
    waiting: Annotated[int, about("number of waiting pods")]
    fitting: Annotated[int, about("number of these pods for which there is room now")]


class ConsolidationForm(AnswerForm, kw_only=True, tag="Consolidation"):
    """`fairlead consolidate`: which nodes can be removed."""

    next_steps: Annotated[list[NextStepForm], about("the commands that carry out the plan")]
    nodes: Annotated[int, about("number of nodes, without `virtual_nodes`")]
    virtual_nodes: Annotated[int, about("number of Fargate and other virtual nodes, left out")]
    can_go: Annotated[int, about("number of nodes that can be removed")]
    at_most: Annotated[int, about("an upper bound: no plan removes more nodes")]
    max: Annotated[int | None, about("the value of `--max` as a number of nodes, or `null`")]
    untried: Annotated[int, about("number of nodes whose removal was not tried because of `max`")]
    too_many: Annotated[
        TooManyForm | None, about("a larger plan that would not be safe, or `null`")
    ]
    bound_by: Annotated[
        str,
        about(
            "what determines `at_most`: a resource, `pods per node`, `groups of nodes` (because "
            'node selectors and taints restrict pods to groups of nodes) or a workload; `""` if '
            "nothing determines it"
        ),
    ]
    needed: Annotated[
        list[str],
        about("nodes that stay because other nodes have too little room for their pods"),
    ]
    needed_anyway: Annotated[
        list[str],
        about(
            "blocked nodes that would have to stay even if nothing blocked them, "
            "because other nodes have too little room for their pods"
        ),
    ]
    waiting_gangs: Annotated[
        list[WaitingGangForm],
        about(
            "gangs with waiting pods; the plan keeps room for these pods, except with `--ignore "
            "waiting-gangs`"
        ),
    ]
    saving_per_hour: Annotated[
        float | None, about("price of the removed nodes per hour; `null` if no prices are known")
    ]
    saving_per_month: Annotated[
        float | None, about("price of the removed nodes per month (730 hours)")
    ]
    at_once: Annotated[
        int | None,
        about("number of nodes that can safely be drained at once; `null` if no number is safe"),
    ]
    takes_s: Annotated[
        float | None,
        about(
            "how long the drains take with `at_once` nodes at once; `null` if `at_once` is `null`"
        ),
    ]
    paces: Annotated[
        list[PaceForm], about("simulations of the drains, with different numbers of nodes at once")
    ]
    pending: Annotated[
        list[UnplacedPodForm], about("pods without a node at the end of a simulation")
    ]
    causes: Annotated[list[KeepCauseForm], about("why nodes have to stay, by kind of reason")]
    blockers: Annotated[list[BlockerForm], about("what blocks the removal of nodes")]
    edits: Annotated[list[DrainEditForm], about("changes that would help to remove blocked nodes")]
    blocked_nodes: Annotated[
        list[BlockedNodeForm],
        about("the blocked nodes; empty if the texts in `blockers` name all of them"),
    ]
    staying: Annotated[list[StayingForm], about("the nodes that stay, and the pods that need them")]
    going: Annotated[list[RemovalForm], about("nodes that can be removed, in order")]
    moves: Annotated[list[PodMoveForm], about("where the pods go")]
