"""guarded_plugin, guarded_action: wrap users' extensions so that failures do not stop the session.

A failure is an exception, a call of `sys.exit` or a return value of the wrong type. Each failure is
reported, and a safe value replaces the result of the call. If the failed method decides whether
something is allowed, the answer is no. If the failed method orders or scores, the failed call has
no effect. A job that is refused because of a failure stays pending until the next session.

Differs from upstream: a panic in a plugin ends the process of kube-batch and Volcano.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import numpy as np
from msgspec.structs import astuple

from fairlead.engine.batch.actions.action import Action
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.plugin_check import METHODS
from fairlead.engine.batch.session.plugin import BatchPlugin, Unschedulable
from fairlead.engine.batch.session.session import Session
from fairlead.engine.core.reporter import PluginFailed, Record, Reporter
from fairlead.engine.core.status import SKIP
from fairlead.engine.framework.extension_point import BoundMethod
from fairlead.engine.framework.fault import PluginFault, describe, fault_in
from fairlead.engine.framework.interface import Plugin as SchedulerPlugin
from fairlead.engine.framework.interface import Scores
from fairlead.engine.framework.user_plugin.answer_check import Check, refuse
from fairlead.engine.framework.user_plugin.guard import (
    SUBSTITUTES,
    checked,
    guarded,
    no,
    nothing,
    substituted,
    yes,
)
from fairlead.engine.framework.user_plugin.plugin_check import problem_of

# The reason of the condition of a job whose plugin failed: upstream's PodReasonSchedulerError.
_REASON: Final = "SchedulerError"
_ORDERS: Final = ("job_order", "queue_order", "task_order")
_VICTIMS: Final = ("preemptable", "preemptable_jobs", "reclaimable", "reclaimable_jobs")
_BOOLEAN_METHODS: Final = (
    "allocatable",
    "job_enqueueable",
    "job_pipelined",
    "job_ready",
    "overused",
    "preemptive",
)


def _any(_arguments: tuple[Any, ...], answer: Any) -> Any:
    return answer


def _yes_or_no(_arguments: tuple[Any, ...], answer: Any) -> bool:
    return bool(answer) if isinstance(answer, bool | np.bool_) else refuse(answer, "True or False")


def _reason(_arguments: tuple[Any, ...], answer: Any) -> Unschedulable | None:
    if answer is not None and not isinstance(answer, Unschedulable):
        refuse(answer, "an Unschedulable or None")
    if answer is not None and not all(isinstance(one, str) for one in astuple(answer)):
        refuse(answer, "an Unschedulable with two strings")
    return answer


def _candidates(arguments: tuple[Any, ...], answer: Any) -> list[Any]:
    allowed = {id(one) for one in arguments[1]}
    if not isinstance(answer, Sequence) or any(id(one) not in allowed for one in answer):
        refuse(answer, "a list of the given candidates")
    return list(answer)


def _plugins(_arguments: tuple[Any, ...], answer: Any) -> list[Any]:
    if not isinstance(answer, Sequence):
        refuse(answer, "a list of plugins")
    for one in answer:
        _require_plugin(one)
    return list(answer)


def _weighted_plugins(_arguments: tuple[Any, ...], answer: Any) -> list[Any]:
    if not isinstance(answer, Sequence):
        refuse(answer, "a list of pairs of a plugin and its weight")
    for one in answer:
        if not isinstance(one, tuple | list) or len(one) != len(("plugin", "weight")):
            refuse(one, "a pair of a plugin and its weight")
        plugin, weight = one
        _require_plugin(plugin)
        if not isinstance(weight, int):
            refuse(weight, "an integer as the weight")
    return list(answer)


def _require_plugin(plugin: object) -> None:
    if isinstance(plugin, type):
        refuse(plugin, "an instance of the plugin class")
    problem = problem_of(plugin)
    if problem:
        raise TypeError(f"the scheduler plugin {type(plugin).__name__} {problem}")


_CHECKS: Final[Mapping[str, Check]] = {
    **dict.fromkeys(METHODS, _any),
    **dict.fromkeys(_BOOLEAN_METHODS, _yes_or_no),
    **dict.fromkeys(_VICTIMS, _candidates),
    **dict.fromkeys(("job_valid", "unschedulable"), _reason),
    "predicates": _plugins,
    "node_prioritizers": _weighted_plugins,
}


def _no_scores(*arguments: Any) -> Scores:
    return np.zeros(len(arguments[-1]), np.int64)


# A session ignores a plugin that fails to score, as kube-batch does.
# upstream: pkg/scheduler/util/scheduler_helper.go: PrioritizeNodes
_SCORE_SUBSTITUTES: Final[Mapping[str, BoundMethod]] = {
    **SUBSTITUTES,
    "pre_score": lambda *_arguments: SKIP,
    "score": lambda *_arguments: 0,
    "score_columns": _no_scores,
    "normalize_scores": _no_scores,
}


_FAILED: Final = object()


def _failed(*_arguments: Any) -> object:
    return _FAILED


def _no_victims(*_arguments: Any) -> list[Any]:
    return []


# The results of methods that fail: nothing is allowed, and nothing has an effect.
_SUBSTITUTES: Final[Mapping[str, BoundMethod]] = {
    **dict.fromkeys(METHODS, nothing),
    **dict.fromkeys(_BOOLEAN_METHODS, no),
    "overused": yes,  # an overused queue gets nothing
    **dict.fromkeys(_VICTIMS, _no_victims),
    **dict.fromkeys(_ORDERS, _failed),
}


class _Key:
    """A sort key of a user's plugin. Keys that cannot be compared are equal."""

    __slots__ = ("_report", "_value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: object, report: Callable[[BaseException], None]) -> None:
        self._value = value
        self._report = report

    def __lt__(self, other: _Key) -> bool:
        if self._value is _FAILED or other._value is _FAILED:
            return False
        try:
            return bool(cast("Any", self._value) < other._value)
        except KeyboardInterrupt:
            raise
        except BaseException as cause:  # noqa: BLE001 - the user's objects are compared
            self._report(cause)
            return False

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, _Key)
        return not self < other and not other < self


def guarded_plugin(plugin: BatchPlugin, reporter: Reporter) -> BatchPlugin:
    """Return `plugin` wrapped so that its failures are reported to `reporter`.

    The scheduler plugins that its methods `predicates` and `node_prioritizers` return are guarded,
    too. These two methods run before the first session. If one of them itself fails, no value
    replaces its result, and PluginFault is raised.
    """
    name = plugin.name
    members: dict[str, Any] = {"name": name}
    for method in METHODS:
        bound_method = getattr(plugin, method, None)
        if bound_method is not None:
            safe = checked(name, method, bound_method, _CHECKS[method])
            members[method] = staticmethod(_with_default(name, method, safe, reporter))
    return cast("BatchPlugin", type(type(plugin).__name__, (), members)())


def _with_default(plugin: str, method: str, safe: BoundMethod, reporter: Reporter) -> BoundMethod:
    """Return a method like `safe` that returns a default if `safe` raises a PluginFault.

    For `predicates` and `node_prioritizers`, there is no default: the returned method raises the
    PluginFault. If `safe` succeeds, each scheduler plugin in its result is wrapped with `guarded`.
    """

    def guard(found: SchedulerPlugin) -> SchedulerPlugin:
        return guarded(found, reporter, _SCORE_SUBSTITUTES)

    if method == "predicates":
        return lambda handle: [guard(found) for found in safe(handle)]
    if method == "node_prioritizers":
        return lambda handle: [(guard(found), weight) for found, weight in safe(handle)]
    if method == "job_valid":
        return _excluding_on_failure(plugin, safe, reporter)
    result = substituted(plugin, method, safe, _SUBSTITUTES[method], reporter)
    return _comparable(plugin, method, result, reporter) if method in _ORDERS else result


def _excluding_on_failure(plugin: str, safe: BoundMethod, reporter: Reporter) -> BoundMethod:
    """Return a method that calls `safe`, and excludes the job if `safe` raises a PluginFault."""

    def job_valid(*arguments: Any) -> Unschedulable | None:
        try:
            found: Unschedulable | None = safe(*arguments)
        except PluginFault as fault:
            reporter.report(PluginFailed(plugin, "job_valid", str(fault)))
            return Unschedulable(_REASON, str(fault))
        return found

    return job_valid


def _comparable(plugin: str, method: str, key_of: BoundMethod, reporter: Reporter) -> BoundMethod:
    """Return a method like `key_of` whose sort keys never raise an exception when compared.

    If the comparison of two results of `key_of` fails, the failure is reported and the results
    count as equal. `_FAILED`, the result of a failed call, counts as equal to every result.
    """

    def report(cause: BaseException) -> None:
        fault = fault_in(plugin, method, f"its keys cannot be compared: {describe(cause)}")
        reporter.report(PluginFailed(plugin, method, str(fault)))

    return lambda item: _Key(key_of(item), report)


class _GuardedAction:
    """A user's own action; if the action fails, the failure is reported."""

    def __init__(self, action: Action, reporter: Reporter) -> None:
        self.name = action.name
        self._execute = checked(action.name, "execute", action.execute, _any)
        self._reporter = reporter

    def execute(self, session: Session) -> None:
        """Run the action; if it fails, undo the evictions that it prepared but did not send."""
        before = {task.id for task in _releasing(session)}
        try:
            self._execute(session)
        except PluginFault as fault:
            self._reporter.report(PluginFailed(self.name, "execute", str(fault)))
            for task in _releasing(session):
                if task.id not in before and task.id not in session.job_table.releasing_pods:
                    session.unevict(task)


def _releasing(session: Session) -> list[Any]:
    jobs = session.jobs.values()
    return [task for job in jobs for task in job.with_status(TaskStatus.RELEASING)]


def guarded_action(action: Action, reporter: Reporter) -> Action:
    """Return `action` wrapped so that its failures are reported to `reporter`."""
    return _GuardedAction(action, reporter)


class PluginFailures:
    """A reporter that collects the messages of failed plugins and actions, each message once."""

    def __init__(self) -> None:
        """Start with no messages."""
        self.messages: list[str] = []

    def report(self, record: Record) -> None:
        """Add the message of a PluginFailed; ignore other records."""
        match record:
            case PluginFailed(message=message) if message not in self.messages:
                self.messages.append(message)
            case _:
                pass
