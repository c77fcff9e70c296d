"""The form of the answer of `fairlead sweep`."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Struct

from fairlead.whatif.result.form.answer_form import AnswerForm, about


class WorstCaseForm(Struct, forbid_unknown_fields=True):
    """The case that is the worst by the measure `rank_by`, with its parameters."""

    case: Annotated[int, about("the number of the case, from 1")]
    parameters: Annotated[dict[str, Any], about("the values of the parameters in this case")]


class SweepConditionForm(Struct, forbid_unknown_fields=True):
    """A condition of `--fail-on`."""

    condition: Annotated[str, about("the condition")]
    holds: Annotated[bool, about("`true` if the condition holds in at least one case")]
    cases: Annotated[list[int], about("the numbers of the cases in which the condition holds")]


class SweepMeasureForm(Struct, forbid_unknown_fields=True):
    """How a measure, such as the number of pending pods, is distributed over the cases."""

    measure: Annotated[str, about("the name of the [measure](sweep.md)")]
    meaning: Annotated[str, about("the measure in words")]
    least: Annotated[float, about("the smallest value")]
    median: Annotated[float, about("the median")]
    p95: Annotated[float, about("the 95th percentile")]
    most: Annotated[float, about("the largest value")]
    worst: Annotated[
        str,
        about('the parameters of the case with the largest value; `""` if all values are equal'),
    ]
    case: Annotated[int, about("the number of the case with the largest value")]


class SweepCaseForm(Struct):
    """A case, with its parameters as texts and its measures; a measure without a value is `null`.

    The names of the parameters are fields, too, so unknown fields are allowed.
    """

    case: Annotated[
        int, about("the number of the case, from 1; each parameter is a further field, as text")
    ]
    pending: Annotated[int | None, about("number of pods that are pending at the end")]
    lost: Annotated[int | None, about("number of pods of failed nodes that do not run again")]
    undrained: Annotated[int | None, about("number of pods that a drain did not remove")]
    pdb_breaches: Annotated[
        int | None, about("number of pods that were displaced against a budget")
    ]
    evicted: Annotated[int | None, about("number of evicted pods")]
    preempted: Annotated[int | None, about("number of preempted pods")]
    displaced_again: Annotated[
        int | None, about("number of loops in which pods are displaced again and again")
    ]
    waited_longest_s: Annotated[float | None, about("the longest wait for a node")]
    waited_p95_s: Annotated[float | None, about("95th percentile of the waits for a node")]
    short_s: Annotated[
        float | None,
        about(
            "the longest time for which the metrics of a HorizontalPodAutoscaler propose more "
            "than `maxReplicas`"
        ),
    ]
    negative_priority_pending: Annotated[
        int | None, about("number of pods with a negative priority that are pending at the end")
    ]
    negative_priority_displaced: Annotated[
        int | None, about("number of evictions and preemptions of pods with a negative priority")
    ]
    cost: Annotated[float | None, about("cost of the autoscaler's nodes")]
    node_hours: Annotated[
        float | None, about("running hours of the autoscaler's nodes, summed over these nodes")
    ]
    nodes_added: Annotated[int | None, about("number of nodes that the autoscaler added")]
    completed: Annotated[int | None, about("number of completed pods")]
    cpu_share: Annotated[float | None, about("share of cpu that is requested (0 to 1)")]
    memory_share: Annotated[float | None, about("share of memory that is requested (0 to 1)")]
    virtual_s: Annotated[float | None, about("the simulated time")]


class SweepResultForm(AnswerForm, kw_only=True, tag="SweepResult"):
    """`fairlead sweep`: a scenario with many values of its parameters."""

    parameters: Annotated[dict[str, list[Any]], about("the values of each parameter")]
    rank_by: Annotated[str, about("the measure that defines the worst case")]
    worst: Annotated[WorstCaseForm, about("the worst case")]
    fail_on: Annotated[list[SweepConditionForm], about("the conditions of `--fail-on`")]
    measures: Annotated[
        list[SweepMeasureForm], about("the measures that differ from 0 in at least one case")
    ]
    cases: Annotated[list[SweepCaseForm], about("all cases")]
