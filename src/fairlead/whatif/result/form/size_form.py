"""The form of the answer of `fairlead size`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from fairlead.whatif.result.form.answer_form import AnswerForm, about


class FleetForm(Struct, forbid_unknown_fields=True):
    """New nodes of one instance type, zone and pool."""

    nodes: Annotated[int, about("number of nodes")]
    type: Annotated[str, about("the instance type")]
    size: Annotated[
        str, about('how these nodes differ from other new nodes of the same type, or `""`')
    ]
    zone: Annotated[str, about('the zone, or `""`')]
    pool: Annotated[str, about('the node pool, or `""`')]
    price: Annotated[float, about("price of a node per hour")]
    cost: Annotated[float, about("price of these nodes per hour")]
    each: Annotated[str, about('`price` as text; `""` without stated prices')]
    all: Annotated[str, about('`cost` as text; `""` without stated prices')]


class BoundCauseForm(Struct, forbid_unknown_fields=True):
    """A resource that determines the lower bound on the cost, and its share of the bound."""

    resource: Annotated[str, about("a resource, and the nodes on which pods need it")]
    share: Annotated[float, about("the resource's share of the lower bound (0 to 1)")]
    percent: Annotated[str, about("`share` as text")]


class SizeObstacleForm(Struct, forbid_unknown_fields=True):
    """A reason why the search can remove no further node."""

    reason: Annotated[str, about("the reason")]
    nodes: Annotated[int, about("number of nodes with this reason")]


class UnplaceablePodForm(Struct, forbid_unknown_fields=True):
    """A pod that fits on no node, with the reason."""

    pod: Annotated[str, about("the pod")]
    why: Annotated[str, about("the reason why no node takes the pod")]


class FailurePodForm(Struct, forbid_unknown_fields=True):
    """A pod that has no node after a failure of nodes, with the reason."""

    pod: Annotated[str, about("the pod")]
    failure: Annotated[str, about("the zone or the nodes that fail")]
    why: Annotated[str, about("the reason why no node takes the pod after the failure")]


class SizeForm(AnswerForm, kw_only=True, tag="Size"):
    """`fairlead size`: the cheapest nodes that run the workloads."""

    nodes_today: Annotated[int, about("number of nodes that are replaced")]
    nodes_kept: Annotated[int, about("number of nodes that stay")]
    nodes: Annotated[int, about("number of new nodes")]
    cost_per_hour: Annotated[float, about("price of the new nodes per hour")]
    cost_per_hour_today: Annotated[float, about("price of the replaced nodes per hour")]
    cost_per_hour_at_least: Annotated[
        float, about("a lower bound: no set of nodes that runs the pods is cheaper")
    ]
    prices: Annotated[str, about("`stated`, or `estimated from cores and memory`")]
    estimated_prices: Annotated[list[str], about("types without a stated price")]
    survives: Annotated[str, about('what can fail (`--survive`), in words, or `""`')]
    failures_tried: Annotated[int, about("number of failures that were tried on the new nodes")]
    node_sets_tried: Annotated[
        int,
        about(
            "with `--survive nodes=N`: number of sets of N nodes whose failure was tried, or is "
            "known to have the same result as a failure that was tried"
        ),
    ]
    node_sets: Annotated[int, about("with `--survive nodes=N`: number of all sets of N nodes")]
    headroom: Annotated[float, about("the value of `--headroom`")]
    effort: Annotated[int, about("the value of `--effort`")]
    scheduling_cycles: Annotated[int, about("number of scheduling cycles of the search")]
    tried_all_changes: Annotated[
        bool, about("`true` if a larger `--effort` would give the same answer")
    ]
    waiting_at_once: Annotated[
        int, about("number of pods without a node if all pods are created at one instant")
    ]
    waiting_today: Annotated[int, about("number of pods without a node on the present nodes")]
    pending_today_after_failure: Annotated[
        int | None,
        about(
            "number of pods without a node after the worst failure of the present nodes; `null` "
            "if no failure was tried"
        ),
    ]
    fleet: Annotated[list[FleetForm], about("the new nodes")]
    binds: Annotated[list[BoundCauseForm], about("what determines the lower bound on the cost")]
    obstacles: Annotated[list[SizeObstacleForm], about("why no further node can be removed")]
    unplaceable: Annotated[list[UnplaceablePodForm], about("pods that fit on no new or kept node")]
    pinned: Annotated[list[FailurePodForm], about("pods that fit on no node after a failure")]
    held: Annotated[
        list[FailurePodForm],
        about("pods that stay pending as long as the Node objects of failed nodes exist"),
    ]
