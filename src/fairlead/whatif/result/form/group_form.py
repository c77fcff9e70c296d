"""The form of the explanation of a pod group, and of estimated start times."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Struct, UnsetType, field

from fairlead.whatif.result.form.answer_form import about


class StartTimeForm(Struct, forbid_unknown_fields=True):
    """When a pod, workload or gang starts, estimated from several simulations."""

    subject: Annotated[str, about("a waiting pod, workload or gang")]
    kind: Annotated[Literal["pod", "workload", "gang"], about("the kind of the subject")]
    pods: Annotated[int, about("number of waiting pods of the subject")]
    started: Annotated[int, about("number of simulations in which the subject starts")]
    p10_s: Annotated[
        float | None, about("10th percentile of the time until the subject starts, or `null`")
    ]
    p50_s: Annotated[float | None, about("median of this time, or `null`")]
    p90_s: Annotated[float | None, about("90th percentile of this time, or `null`")]


class StartTimesBasisForm(Struct, forbid_unknown_fields=True):
    """How start times were estimated."""

    draws: Annotated[int, about("number of simulations")]
    running: Annotated[int, about("number of running pods")]
    known: Annotated[int, about("number of running pods whose run time is known")]
    known_from_file: Annotated[
        int, about("number of running pods whose run time is from `--runtimes`")
    ]
    simulated_s: Annotated[float, about("the longest time that a simulation covers")]


class BehavesLikeForm(Struct, forbid_unknown_fields=True):
    """The Kubernetes version that each part of the simulation follows."""

    version: Annotated[str, about("the version")]
    scheduler: Annotated[str, about("the version of the scheduler")]
    node_controllers: Annotated[str, about("the version of the node controllers")]
    priority_admission: Annotated[str, about("the version of the Priority admission plugin")]
    feature_gates: Annotated[dict[str, bool], about("the feature gates")]


class GroupQueueForm(Struct, forbid_unknown_fields=True):
    """The queue of the explained group."""

    queue: Annotated[str, about("the queue")]
    weight: Annotated[int, about("the weight of the queue")]
    deserved: Annotated[dict[str, float], about("what the queue deserves, by resource")]
    allocated: Annotated[dict[str, int], about("what the queue uses, by resource")]
    requested: Annotated[dict[str, int], about("what the queue requests, by resource")]
    share: Annotated[float, about("the largest ratio of used to deserved amounts")]
    overused: Annotated[bool, about("`true` if the queue uses all that it deserves")]


class GroupNodeForm(Struct, forbid_unknown_fields=True):
    """A node that cannot run the group's next member."""

    node: Annotated[str, about("the node")]
    reason: Annotated[str, about("why the node cannot run the member")]
    lacking: Annotated[dict[str, int], about("what the node lacks, by resource")]
    members: Annotated[int, about("number of other members that fit on the node")]


class GroupExplanationForm(
    Struct, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="GroupExplanation"
):
    """`fairlead explain podgroup/NAMESPACE/NAME`: why a group of pods waits."""

    api_version: Annotated[
        Literal["fairlead.dev/v1beta1"], about("the version of the fields of all answers")
    ] = field(name="apiVersion")
    group: Annotated[str, about("the group")]
    at: Annotated[str, about("the time of the explanation")]
    obstacle: Annotated[str, about("the kind of the obstacle, such as `NO_NODE`")]
    why: Annotated[str, about("the obstacle in words")]
    has_minimum: Annotated[
        bool, about("`true` if the minimum of members runs, or starts with the next session")
    ]
    min_member: Annotated[int, about("the minimum number of members")]
    members: Annotated[int, about("number of members")]
    ready: Annotated[int, about("number of members that have a node or have succeeded")]
    promised: Annotated[
        int,
        about(
            "number of members that are assigned to a node and wait until other pods "
            "release resources there"
        ),
    ]
    placeable: Annotated[int, about("number of further members that fit now")]
    queue: Annotated[GroupQueueForm | None, about("the queue of the group, or `null`")]
    member: Annotated[str, about('the first member that could not be placed, or `""`')]
    nodes: Annotated[list[GroupNodeForm], about("nodes that cannot run `member`")]
    nodes_left_out: Annotated[int, about("number of further nodes that cannot run `member`")]
    starts_after_s: Annotated[
        float | None, about("estimated time until the group starts; `null` if unknown")
    ]
    is_too_large: Annotated[
        bool, about("`true` if the group would not fit even if all other pods ended")
    ]
    victims: Annotated[list[str], about("pods that the next session evicts for the group")]
    rule: Annotated[str | None, about("the action that evicts the victims, or `null`")]
    no_evictions: Annotated[
        list[str], about("sentences that say why no pods are evicted for the group")
    ]
    remedies: Annotated[list[str], about("changes with which the group would start now")]
    plugin_failures: Annotated[list[str], about("failures of plugins")]
    notes: Annotated[list[str], about("sentences about assumptions, and about what is left out")]
    behaves_like: Annotated[
        BehavesLikeForm | UnsetType,
        about("the simulated Kubernetes versions; absent for the default version"),
    ] = UNSET
    start_times: Annotated[
        list[StartTimeForm] | UnsetType,
        about("estimated start times; only with `--seeds` or `--runtimes`"),
    ] = UNSET
    start_times_basis: Annotated[
        StartTimesBasisForm | UnsetType | None,
        about("how the start times were estimated; only with `--seeds` or `--runtimes`"),
    ] = UNSET
