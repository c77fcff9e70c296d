"""The form of the answer of `fairlead replay`."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Struct, UnsetType

from fairlead.whatif.result.form.answer_form import AnswerForm, about


class AgreementForm(Struct, forbid_unknown_fields=True):
    """A kind of agreement or difference between record and simulation, and its number of pods."""

    agreement: Annotated[str, about("the kind of agreement, such as `same` or `lower`")]
    pods: Annotated[int, about("number of pods")]
    share: Annotated[str, about('share of the compared pods, as text, or `""`')]
    meaning: Annotated[str, about("the kind of agreement in words")]


class ReplayedPodForm(Struct, kw_only=True, forbid_unknown_fields=True):
    """A recorded pod; most fields depend on whether the record has nodes."""

    pod: Annotated[str, about("the pod")]
    time: Annotated[str, about('the recorded time, or `""`')]
    agreement: Annotated[str, about("the kind of agreement")]
    reason: Annotated[str, about("the reason in words")]
    node: Annotated[str | UnsetType, about("the recorded node; only with recorded nodes")] = UNSET
    best: Annotated[str | UnsetType, about("`choices` as text; only with recorded nodes")] = UNSET
    choices: Annotated[
        list[str] | UnsetType, about("the best nodes (not always all); only with recorded nodes")
    ] = UNSET
    equals: Annotated[int | UnsetType, about("number of best nodes; only with recorded nodes")] = (
        UNSET
    )
    feasible: Annotated[
        int | UnsetType, about("number of nodes on which the pod fits; only with recorded nodes")
    ] = UNSET
    score: Annotated[
        int | UnsetType | None,
        about("the score of the recorded node, or `null`; only with recorded nodes"),
    ] = UNSET
    best_score: Annotated[
        int | UnsetType | None, about("the highest score, or `null`; only with recorded nodes")
    ] = UNSET
    victims: Annotated[
        list[str] | UnsetType,
        about("pods that the rules preempt for the pod; only with recorded nodes"),
    ] = UNSET
    scheduler: Annotated[
        str | UnsetType, about("the pod's scheduler; only with recorded nodes")
    ] = UNSET
    placed: Annotated[
        str | UnsetType,
        about('when the rules place the pod, or `""`; only without recorded nodes'),
    ] = UNSET
    difference: Annotated[
        str | UnsetType, about("`difference_s` as text; only without recorded nodes")
    ] = UNSET
    difference_s: Annotated[
        float | UnsetType | None,
        about("how much later the rules place the pod, or `null`; only without recorded nodes"),
    ] = UNSET


class ReplayPreemptionForm(Struct, forbid_unknown_fields=True):
    """A preemption in the record, and the pod for which it probably happened."""

    time: Annotated[str, about("the recorded time")]
    pod: Annotated[str, about("the preempted pod")]
    node: Annotated[str, about("the node of the preempted pod")]
    priority: Annotated[int, about("the priority of the preempted pod")]
    preemptor: Annotated[str, about('the pod that was probably nominated to the node, or `""`')]


class ReplayForm(AnswerForm, kw_only=True, tag="Replay"):
    """`fairlead replay`: whether recorded placements follow the scheduler's rules."""

    placements: Annotated[int, about("number of compared pods")]
    agreement_ratio: Annotated[
        float | None, about("share of the pods that agree (0 to 1); `null` without pods")
    ]
    equal_ratio: Annotated[
        float | UnsetType | None,
        about(
            "share of the pods whose recorded node has the highest score, or `null`; only with "
            "recorded nodes"
        ),
    ] = UNSET
    average_score_lost: Annotated[
        float | UnsetType,
        about(
            "average difference between the highest score and the score of the "
            "recorded node, over the pods for which these scores differ; only with "
            "recorded nodes"
        ),
    ] = UNSET
    tolerance_s: Annotated[
        float | UnsetType,
        about(
            "the largest difference between two start times that count as equal; only without "
            "recorded nodes"
        ),
    ] = UNSET
    agreement: Annotated[list[AgreementForm], about("number of pods by kind of agreement")]
    differences: Annotated[list[ReplayedPodForm], about("the pods that differ")]
    preemptions: Annotated[
        list[ReplayPreemptionForm] | UnsetType,
        about("recorded preemptions; only with recorded nodes"),
    ] = UNSET
    pods: Annotated[list[ReplayedPodForm], about("all pods")]
