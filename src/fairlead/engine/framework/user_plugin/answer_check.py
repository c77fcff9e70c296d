"""Checks the return values of user plugins at each extension point.

    CHECKS[method](arguments, answer)   the value as the runtime needs it; raises a TypeError or
                                        a ValueError that describes the error

The checks are needed because Python does not enforce the type annotations of a user's plugin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import UnionType
from typing import Any, Final, NoReturn

import numpy as np
from msgspec import Struct

from fairlead.api.timestamp import NANOSECONDS_PER_MILLISECOND
from fairlead.engine.core.command import (
    Bind,
    Condition,
    CreateObject,
    DeleteObject,
    ObjectRef,
    PatchObject,
    PatchStatus,
    RecordEvent,
)
from fairlead.engine.core.status import REJECTING, Code, Status
from fairlead.engine.framework.candidate import CandidateRule
from fairlead.engine.framework.interface import (
    PostFilterResult,
    PreFilterResult,
    Preparation,
    Scores,
    Verdicts,
)
from fairlead.engine.framework.waiting_pods import Wait
from fairlead.engine.state.pod_info import PodInfo

Check = Callable[[tuple[Any, ...], Any], Any]

# 100 × RAW_SCORE_MAX fits into 64 bits, as scaling to 0..100 requires.
RAW_SCORE_MAX: Final = 1 << 53
_SHOWN_MAX: Final = 60
_USUAL: Final = REJECTING | {Code.SUCCESS, Code.ERROR}


def refuse(answer: object, wanted: str) -> NoReturn:
    """Raise TypeError for the result `answer`; `wanted` describes the expected result."""
    shown = repr(answer)
    if len(shown) > _SHOWN_MAX:
        shown = f"{shown[: _SHOWN_MAX - 3]}..."
    raise TypeError(f"it returned {shown}; expected {wanted}")


def _status(wanted: str, *codes: Code, others: tuple[type, ...] = ()) -> Check:
    """Return a check that accepts None, certain statuses, and instances of the types `others`.

    The check accepts a Status whose code is in `_USUAL` or in `codes`. `wanted` describes the
    accepted values in the error message.
    """

    def check(_arguments: tuple[Any, ...], answer: Any) -> Any:
        if answer is None:
            return None
        if not isinstance(answer, Status):
            return answer if isinstance(answer, others) else refuse(answer, wanted)
        _check_status(answer)
        if answer.code not in _USUAL and answer.code not in codes:
            raise ValueError(f"it returned the code {answer.code.value}, which is not allowed here")
        return answer

    return check


def _check_status(status: Status) -> None:
    reasons = status.reasons
    if not isinstance(reasons, tuple) or not all(isinstance(reason, str) for reason in reasons):
        raise TypeError(f"the reasons of a status must be a tuple of strings, not {reasons!r}")


_NODE_NAMES: Final = "PreFilterResult.node_names must be a tuple of strings or None"


def _pre_filter(arguments: tuple[Any, ...], answer: Any) -> Any:
    if isinstance(answer, PreFilterResult):
        names = answer.node_names
        if names is not None and not (
            isinstance(names, tuple) and all(isinstance(name, str) for name in names)
        ):
            raise TypeError(_NODE_NAMES)
        return answer
    return _STATUS_OR_RESULT(arguments, answer)


_STATUS_OR_RESULT: Final = _status("a PreFilterResult, a Status or None", Code.SKIP)


def _verdicts(arguments: tuple[Any, ...], answer: Any) -> Verdicts:
    rows = arguments[-1]
    if not isinstance(answer, Verdicts):
        refuse(answer, "Verdicts")
    codes = _whole_numbers("Verdicts.codes", answer.codes, len(rows)).astype(np.int32, copy=False)
    if not codes.any():
        return Verdicts(codes, answer.statuses)
    count = len(answer.statuses)
    if codes.min() < 0 or codes.max() >= count:
        raise ValueError(
            f"Verdicts.codes go from {codes.min()} to {codes.max()}, but there are {count} statuses"
        )
    for code in np.flatnonzero(np.bincount(codes, minlength=count)).tolist():
        if code:
            _rejection(answer.statuses[code])
    return Verdicts(codes, answer.statuses)


def _rejection(status: object) -> None:
    if not isinstance(status, Status):
        refuse(status, "a Status")
    _check_status(status)
    if status.code not in REJECTING and status.code is not Code.ERROR:
        raise ValueError(
            f"Verdicts.statuses has the code {status.code.value}, which does not reject a node"
        )


def _whole_numbers(what: str, numbers: Any, count: int) -> Scores:
    if not isinstance(numbers, np.ndarray) or numbers.dtype.kind not in "iu":
        kind = getattr(numbers, "dtype", type(numbers).__name__)
        raise TypeError(f"{what} are {kind}, not an array of integers")
    if numbers.shape != (count,):
        raise ValueError(f"{what} have the shape {numbers.shape}, not ({count},)")
    return numbers


def _score(_arguments: tuple[Any, ...], answer: Any) -> int:
    if not isinstance(answer, int | np.integer):
        refuse(answer, "an integer")
    if abs(int(answer)) > RAW_SCORE_MAX:
        raise ValueError(f"the score {answer} is not from -2^53 to 2^53")
    return int(answer)


def _scores(arguments: tuple[Any, ...], answer: Any) -> Scores:
    scores = _whole_numbers("scores", answer, len(arguments[-1]))
    if len(scores) and (scores.max() > RAW_SCORE_MAX or scores.min() < -RAW_SCORE_MAX):
        raise ValueError("a score is not from -2^53 to 2^53")
    return scores.astype(np.int64, copy=False)


def _post_filter(arguments: tuple[Any, ...], answer: Any) -> PostFilterResult:
    _, pod, diagnosis = arguments
    if not isinstance(answer, PostFilterResult) or not isinstance(answer.status, Status):
        refuse(answer, "a PostFilterResult")
    _check_status(answer.status)
    for command in answer.commands:
        if not isinstance(command, PatchStatus):
            refuse(command, "a PatchStatus among the commands")
        _check_command(command)
    if answer.shortlist is not None:
        raise ValueError("it has a shortlist, which only DefaultPreemption may return")
    if not answer.status.is_success:
        return answer
    if answer.nominated_node and diagnosis.table.find(answer.nominated_node) is None:
        raise ValueError(f"it nominates the node {answer.nominated_node!r}, which does not exist")
    for victim in answer.victims:
        if not isinstance(victim, PodInfo):
            refuse(victim, "a PodInfo among the victims")
        # A victim's priority must be lower than the preemptor's
        # (`engine.framework.preemption.policy`).
        if victim.priority >= pod.priority:
            raise ValueError(
                f"the priority of the victim {victim.key} is not below the preemptor's"
            )
    return answer


def _permit(arguments: tuple[Any, ...], answer: Any) -> Any:
    if isinstance(answer, Wait):
        _check_duration("Wait.timeout", answer.timeout)
    return _STATUS_OR_WAIT(arguments, answer)


_STATUS_OR_WAIT: Final = _status("a Status, a Wait or None", others=(Wait,))


def _check_duration(what: str, value: object) -> None:
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"{what} is {value!r}, not a number of nanoseconds")
    # A plugin that returns less probably means seconds. A run would then repeat the call without
    # end.
    if 0 < value < NANOSECONDS_PER_MILLISECOND:
        raise ValueError(f"{what} is {value} ns, less than 1 ms; plugin.seconds makes durations")


def _pre_bind(arguments: tuple[Any, ...], answer: Any) -> Any:
    if isinstance(answer, Preparation):
        _check_duration("Preparation.timeout", answer.timeout)
        _check_duration("Preparation.interval", answer.interval)
        if not answer.interval:
            raise ValueError("Preparation.interval is 0")
        if not isinstance(answer.commands, tuple | list):
            raise TypeError("Preparation.commands must be a tuple of commands")
        _commands(arguments, answer.commands)
        _check_parts(answer)
    return _STATUS_OR_PREPARATION(arguments, answer)


_STATUS_OR_PREPARATION: Final = _status("a Status, a Preparation or None", others=(Preparation,))


def _commands(_arguments: tuple[Any, ...], answer: Any) -> Sequence[Any]:
    commands = tuple(answer)
    for command in commands:
        if not isinstance(command, _PREPARATION_COMMANDS):
            refuse(command, "a command that creates, deletes or patches an object")
        _check_command(command)
    return commands


_PREPARATION_COMMANDS: Final = (CreateObject, DeleteObject, PatchObject, PatchStatus, RecordEvent)


def _check_command(command: Struct) -> None:
    """Raise TypeError if a part of `command` does not have the type in `_PARTS`."""
    _check_parts(command)
    if isinstance(command, CreateObject) and not isinstance(
        command.manifest.get("metadata", {}), Mapping
    ):
        raise TypeError("the metadata in CreateObject.manifest must be a mapping")
    if isinstance(command, PatchStatus):
        for condition in command.conditions:
            if not isinstance(condition, Condition):
                refuse(condition, "a Condition among the conditions")
            _check_parts(condition)


def _check_parts(whole: Struct) -> None:
    for name in whole.__struct_fields__:
        kind, wanted = _PARTS.get(name, (object, ""))
        part = getattr(whole, name)
        if not isinstance(part, kind):
            raise TypeError(f"{type(whole).__name__}.{name} must be {wanted}, not {part!r}")
        if isinstance(part, ObjectRef):
            _check_parts(part)


# The types of the fields of commands and their parts, with the words for messages.
_REFERENCE: Final = (ObjectRef, "an ObjectRef, such as pod.ref")
_MAPPING: Final = (Mapping, "a mapping")
_TEXT: Final = (str, "a string")
_PARTS: Final[Mapping[str, tuple[type | UnionType, str]]] = {
    "target": _REFERENCE,
    "regarding": _REFERENCE,
    "related": (ObjectRef | None, "an ObjectRef or None"),
    "patch": _MAPPING,
    "manifest": _MAPPING,
    "fields": _MAPPING,
    "conditions": (tuple | list, "a tuple of Conditions"),
    "grace_period_s": (int | None, "an integer or None"),
    **dict.fromkeys(("kind", "namespace", "name", "uid"), _TEXT),
    **dict.fromkeys(("type", "status", "reason", "message", "last_heartbeat_time"), _TEXT),
    **dict.fromkeys(("action", "note", "reporting_controller"), _TEXT),
    **dict.fromkeys(("subresource", "why", "resource_version", "policy"), _TEXT),
    **dict.fromkeys(("on_timeout", "on_cancel"), _TEXT),
}


def _bind(arguments: tuple[Any, ...], answer: Any) -> Bind | None:
    pod, node = arguments
    if answer is None:
        return None
    if not isinstance(answer, Bind):
        refuse(answer, "a Bind or None")
    if answer.pod != pod.ref or answer.node != node:
        raise ValueError(f"it binds {answer.pod.key} to {answer.node}, not {pod.key} to {node}")
    return answer


def _ordering(_arguments: tuple[Any, ...], answer: Any) -> tuple[int, ...]:
    if not isinstance(answer, tuple) or not all(isinstance(part, int) for part in answer):
        refuse(answer, "a tuple of integers")
    return answer


def _truth(_arguments: tuple[Any, ...], answer: Any) -> bool:
    return bool(answer)


def _anything(_arguments: tuple[Any, ...], answer: Any) -> Any:
    return answer


def _rules(_arguments: tuple[Any, ...], answer: Any) -> Sequence[Any]:
    rules = tuple(answer)
    for rule in rules:
        if not isinstance(rule, CandidateRule):
            refuse(rule, "a CandidateRule")
    return rules


_STATUS: Final = _status("a Status or None")

CHECKS: Final[Mapping[str, Check]] = {
    "pre_enqueue": _STATUS,
    "sort_key": _ordering,
    "concerns": _truth,
    "pre_filter": _pre_filter,
    "add_pod": _anything,
    "remove_pod": _anything,
    "filter": _STATUS,
    "filter_columns": _verdicts,
    "post_filter": _post_filter,
    "is_eligible_victim": _truth,
    "importance": _ordering,
    "candidate_rules": _rules,
    "scores_alike": _truth,
    "pre_score": _status("a Status or None", Code.SKIP),
    "score": _score,
    "score_columns": _scores,
    "epoch": _anything,
    "normalize_scores": _scores,
    "reserve": _STATUS,
    "release_commands": _commands,
    "unreserve": _anything,
    "permit": _permit,
    "pre_bind": _pre_bind,
    "is_prepared": _status("a Status or None", Code.WAIT),
    "bind": _bind,
    "post_bind": _anything,
    "is_woken_by": _truth,
}
