"""The form of the answer of `fairlead rebalance`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct, field

from fairlead.whatif.result.form.answer_form import AnswerForm, about


class BalanceForm(Struct, forbid_unknown_fields=True):
    """How evenly pods load the nodes."""

    waiting_pods: Annotated[int, about("number of pods without a node")]
    fullest_load: Annotated[float, about("the load of the fullest node (1 is full)")]
    deviation: Annotated[float, about("the standard deviation of the loads of the nodes")]


class RebalanceMoveForm(Struct, kw_only=True, forbid_unknown_fields=True):
    """A pod to evict, and the node of its replacement."""

    step: Annotated[int, about("number of the step, from 1")]
    pod: Annotated[str, about("the pod to evict")]
    origin: Annotated[str, about("the node of the pod")] = field(name="from")
    target: Annotated[str, about("the node of the pod's replacement")] = field(name="to")
    cordon: Annotated[str, about('the node to cordon before the eviction, or `""`')]
    places: Annotated[str, about('a waiting pod that gets room, or `""`')]
    gain: Annotated[float, about("decrease of the sum of the squared loads of all nodes")]
    deviation: Annotated[float, about("`deviation` after the move")]
    points: Annotated[str, about("decrease of `deviation` in percentage points, as text")]


class RebalanceForm(AnswerForm, kw_only=True, tag="Rebalance"):
    """`fairlead rebalance`: moves of pods that make room for other pods or even out node loads."""

    before: Annotated[BalanceForm, about("the balance in the dump")]
    after: Annotated[BalanceForm, about("the balance after the moves")]
    moves: Annotated[list[RebalanceMoveForm], about("the moves, one after another")]
