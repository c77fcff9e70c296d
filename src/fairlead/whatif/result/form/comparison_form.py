"""The forms of the answers that compare what-ifs, and that compare dumps."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from fairlead.whatif.result.form.answer_form import AnswerForm, about


class FailOnForm(Struct, forbid_unknown_fields=True):
    """A condition of `--fail-on`."""

    condition: Annotated[str, about("the condition")]
    holds: Annotated[bool, about("`true` if the condition holds")]
    evidence: Annotated[list[str], about("the facts that make the condition hold")]


class AlternativeForm(Struct, forbid_unknown_fields=True):
    """One of the compared what-ifs, with its outcome."""

    alternative: Annotated[str, about("the name of the alternative")]
    changes: Annotated[list[str], about("the change, as options")]
    source: Annotated[str, about("the dump")]
    scheduler: Annotated[str, about('the scheduler configuration in words, or `""`')]
    outcome: Annotated[str, about("the [outcome](results.md#verdict)")]
    severity: Annotated[str, about("the severity of the outcome")]
    sentence: Annotated[str, about("the verdict")]
    pending: Annotated[int, about("number of pods that are pending because of the change")]
    still_pending: Annotated[int, about("number of pods that are pending without the change, too")]
    preempted: Annotated[int, about("number of preempted pods")]
    evicted: Annotated[int, about("number of evicted pods")]
    moved: Annotated[int, about("number of moved pods")]
    gone: Annotated[int, about("number of pods that nothing replaces")]
    breaches: Annotated[int, about("number of pods that are displaced against a budget")]
    fail_on: Annotated[list[FailOnForm], about("the conditions of `--fail-on`")]
    recovered_s: Annotated[
        float | None, about("when all affected pods run again; `null` if they do not")
    ]
    nodes: Annotated[int, about("number of nodes at the end")]
    cost_per_month: Annotated[
        float | None, about("cost of the autoscaler's nodes at the end, if known")
    ]


class AlternativeWorkloadForm(Struct, forbid_unknown_fields=True):
    """A workload in one of the what-ifs; a number is `null` if the change has no effect on it."""

    workload: Annotated[str, about("the workload")]
    alternative: Annotated[str, about("the name of the alternative")]
    wanted: Annotated[int | None, about("number of pods that should be ready at the end")]
    lowest: Annotated[int | None, about("lowest number of ready pods")]
    lowest_for_s: Annotated[
        float | None, about("total time with `lowest` ready pods; see [json.md](json.md#workloads)")
    ]
    lowest_for: Annotated[str | None, about("`lowest_for_s` as text")]
    at_end: Annotated[int | None, about("number of ready pods at the end")]
    what: Annotated[str, about("a summary in words")]


class WhatIfComparisonForm(AnswerForm, kw_only=True, tag="WhatIfComparison"):
    """`fairlead whatif` about several alternatives, dumps, schedulers or releases."""

    alternatives: Annotated[list[AlternativeForm], about("the compared what-ifs")]
    workloads: Annotated[
        list[AlternativeWorkloadForm], about("the workloads that differ between alternatives")
    ]


class ResourceTotalForm(Struct, forbid_unknown_fields=True):
    """The totals of a resource in both dumps; cpu in millicores, memory in bytes."""

    resource: Annotated[str, about("the resource")]
    allocatable_before: Annotated[int, about("allocatable amount of all nodes in the first dump")]
    allocatable: Annotated[int, about("allocatable amount of all nodes in the second dump")]
    requested_before: Annotated[int, about("requests of pods on nodes in the first dump")]
    requested: Annotated[int, about("requests of pods on nodes in the second dump")]
    allocatable_words: Annotated[str, about("the allocatable amounts as text")]
    requested_words: Annotated[str, about("the requests as text")]
    differs: Annotated[bool, about("`true` if an amount differs")]


class PoolDifferenceForm(Struct, forbid_unknown_fields=True):
    """A node pool and instance type whose nodes differ between the dumps."""

    pool: Annotated[str, about("the node pool")]
    instance_type: Annotated[str, about('the instance type, or `""`')]
    nodes_before: Annotated[int, about("number of nodes in the first dump")]
    nodes: Annotated[int, about("number of nodes in the second dump")]
    added: Annotated[int, about("number of nodes that only the second dump has")]
    removed: Annotated[int, about("number of nodes that only the first dump has")]


class NodeDifferenceForm(Struct, forbid_unknown_fields=True):
    """A way in which nodes that are in both dumps differ."""

    what: Annotated[str, about("the difference")]
    nodes: Annotated[int, about("number of nodes with this difference")]
    which: Annotated[str, about("`names` as text")]
    names: Annotated[list[str], about("the nodes")]


class WorkloadDifferenceForm(Struct, forbid_unknown_fields=True):
    """A workload that differs between the dumps; a number that a dump does not show is `null`."""

    workload: Annotated[str, about("the workload")]
    change: Annotated[Literal["added", "removed", "changed"], about("the kind of the difference")]
    what: Annotated[list[str], about("the differences")]
    replicas_before: Annotated[int | None, about("number of replicas in the first dump")]
    replicas: Annotated[int | None, about("number of replicas in the second dump")]
    missing_before: Annotated[int | None, about("number of missing pods in the first dump")]
    missing: Annotated[int | None, about("number of missing pods in the second dump")]


class ObjectDifferenceForm(Struct, forbid_unknown_fields=True):
    """An object, other than nodes and workloads, that differs between the dumps."""

    object: Annotated[str, about("kind and name of the object")]
    change: Annotated[Literal["added", "removed", "changed"], about("the kind of the difference")]
    what: Annotated[list[str], about("the differences")]


class DumpComparisonForm(AnswerForm, kw_only=True, tag="DumpComparison"):
    """`fairlead whatif --against-snapshot` without a change: which objects of two dumps differ."""

    difference: Annotated[bool, about("`true` if the dumps differ")]
    resources: Annotated[list[ResourceTotalForm], about("totals of resources")]
    node_pools: Annotated[list[PoolDifferenceForm], about("node pools whose nodes differ")]
    nodes: Annotated[list[NodeDifferenceForm], about("nodes that are in both dumps and differ")]
    workloads: Annotated[list[WorkloadDifferenceForm], about("workloads that differ")]
    objects: Annotated[
        list[ObjectDifferenceForm],
        about("budgets, PriorityClasses, quotas, limits and autoscalers that differ"),
    ]
