"""The form of the explanation of a pod."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Struct, UnsetType, field

from fairlead.whatif.result.form.answer_form import about
from fairlead.whatif.result.form.group_form import (
    BehavesLikeForm,
    StartTimeForm,
    StartTimesBasisForm,
)


class StatusForm(Struct, forbid_unknown_fields=True):
    """A refusal of the pod, with the plugin that refuses it."""

    plugin: Annotated[str, about('the plugin, or `""`')]
    code: Annotated[str, about("the plugin's status code, such as `Unschedulable`")]
    reasons: Annotated[list[str], about("the reasons")]


class ExplainedVictimForm(Struct, forbid_unknown_fields=True):
    """A pod that would be preempted or evicted to make room for the explained pod."""

    pod: Annotated[str, about("the pod")]
    priority: Annotated[int, about("the priority of this pod")]


class CandidateForm(Struct, forbid_unknown_fields=True):
    """What preemption would do on one of the nodes on which it makes room for the pod."""

    victims: Annotated[list[ExplainedVictimForm], about("the pods that are preempted")]
    pdb_violations: Annotated[
        int, about("number of these pods that are preempted against a budget")
    ]


class PreemptionForm(Struct, forbid_unknown_fields=True):
    """Whether preemption would make room for the pod, and on which node."""

    ineligible: Annotated[str, about('why the pod may not preempt others, or `""`')]
    candidates: Annotated[dict[str, CandidateForm], about("nodes on which preemption makes room")]
    rejected: Annotated[dict[str, StatusForm], about("nodes on which preemption does not help")]
    nominated: Annotated[
        list[str],
        about("the node that preemption chooses; several nodes if a tie is broken at random"),
    ]
    rule: Annotated[str, about("the rule by which preemption chooses the node")]


class NewNodeForm(Struct, forbid_unknown_fields=True):
    """New nodes that are copies of existing nodes, and whether they would take the pod."""

    like: Annotated[str, about('the first of `likes`, or `""`')]
    likes: Annotated[
        list[str],
        about("the existing nodes that are copied; empty if no node is large enough for the pod"),
    ]
    refusal: Annotated[
        str, about('why the copy of `like` refuses the pod; `""` if the copy takes the pod')
    ]
    failed_zone: Annotated[
        str, about('the zone of `like` if no existing node of this zone takes pods, otherwise `""`')
    ]
    count: Annotated[int, about("number of copies that are needed")]


class NewNodesForGroupForm(Struct, forbid_unknown_fields=True):
    """New nodes with which the pod's PodGroup would start."""

    group: Annotated[str, about("the PodGroup")]
    like: Annotated[str, about("the node to copy")]
    count: Annotated[int, about("number of copies; 0 if no number was found")]


class RoomForm(Struct, forbid_unknown_fields=True):
    """Pods that a PostFilter plugin would evict to make room for the pod."""

    by: Annotated[str, about("the plugin")]
    node: Annotated[str, about("the node")]
    victims: Annotated[list[ExplainedVictimForm], about("the pods that the plugin would evict")]


class ExplanationForm(
    Struct, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="Explanation"
):
    """`fairlead explain pod/NAMESPACE/NAME`: why a pod is pending, or which nodes it fits."""

    api_version: Annotated[
        Literal["fairlead.dev/v1beta1"], about("the version of the fields of all answers")
    ] = field(name="apiVersion")
    pod: Annotated[str, about("the pod")]
    node: Annotated[str, about('the node of the pod; `""` for a pending pod')]
    priority: Annotated[int, about("the priority of the pod")]
    gated: Annotated[
        StatusForm | None,
        about(
            "the plugin that keeps the pod out of the scheduling queue, with its reasons; `null` "
            "if there is none"
        ),
    ]
    verdicts: Annotated[
        dict[str, StatusForm | None],
        about("by node: why the node refuses the pod; `null` if the pod fits"),
    ]
    scores: Annotated[
        dict[str, dict[str, int]],
        about("scores (0 to 100) by node and plugin, before the weights are applied"),
    ]
    weights: Annotated[dict[str, int], about("the weight of each plugin")]
    totals: Annotated[dict[str, int], about("the weighted total of each node")]
    equals: Annotated[list[str], about("the nodes with the highest total")]
    choices: Annotated[list[str], about("the nodes from which the scheduler chooses")]
    via: Annotated[
        str,
        about(
            'why the scheduler chooses from these nodes: `nominated`, `single` or `score`; `""` '
            "if there are none"
        ),
    ]
    message: Annotated[str, about('the FailedScheduling message, or `""`')]
    unmet: Annotated[
        list[str],
        about(
            "sentences about labels that the pod requires but no node has, or about taints that "
            "keep the pod off suitable nodes"
        ),
    ]
    remedies: Annotated[
        dict[str, list[str]], about("by node: changes with which the node would take the pod")
    ]
    too_small: Annotated[
        dict[str, str], about("by node: why the node is too small even without other pods")
    ]
    preemption: Annotated[
        PreemptionForm | None, about("what preemption would do; `null` if preemption is not tried")
    ]
    new_node: Annotated[
        NewNodeForm | None,
        about(
            "whether a copy of an existing node would take the pod; `null` if this was not checked"
        ),
    ]
    larger_node: Annotated[
        NewNodeForm | None,
        about(
            "copies of a larger existing node, if the pods need fewer copies of it than of "
            "`new_node`; otherwise `null`"
        ),
    ]
    new_nodes_for_group: Annotated[
        NewNodesForGroupForm | None,
        about("new nodes with which the group of the pod would start, or `null`"),
    ]
    room: Annotated[
        RoomForm | None,
        about(
            "pods that another PostFilter plugin would evict to make room for the pod, or `null`"
        ),
    ]
    held_group: Annotated[
        str, about('the PodGroup of the pod if this group cannot start, otherwise `""`')
    ]
    after_rivals: Annotated[
        str,
        about('a sentence about other pods that can take the room of the explained pod, or `""`'),
    ]
    notes: Annotated[list[str], about("sentences about the state of the pod, and assumptions")]
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
