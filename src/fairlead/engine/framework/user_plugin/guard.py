"""guarded: wraps a user's plugin so that its failures do not stop the scheduler.

A method fails if it raises an exception, calls sys.exit or returns a value that is not allowed.
`SUBSTITUTES` lists the methods that have a safe default, such as `sort_key` and `is_woken_by`. If
one of these methods fails, the failure is reported and the default is returned. If any other method
fails, `PluginFault` is raised. The runtime turns a `PluginFault` into an ERROR status.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from fairlead.engine.core.reporter import PluginFailed, Reporter
from fairlead.engine.framework.candidate import Candidate, CandidateRule
from fairlead.engine.framework.extension_point import BoundMethod, Method, wrap_methods
from fairlead.engine.framework.fault import PluginFault, fault_in, fault_of
from fairlead.engine.framework.interface import Plugin
from fairlead.engine.framework.user_plugin.answer_check import CHECKS, Check
from fairlead.engine.state.pod_info import PodInfo


def _by_priority(pod: PodInfo, timestamp: int) -> tuple[int, ...]:
    return (-pod.priority, timestamp)


def yes(*_arguments: Any) -> bool:
    """Return True."""
    return True


def no(*_arguments: Any) -> bool:
    """Return False."""
    return False


def _no_commands(*_arguments: Any) -> tuple[()]:
    return ()


def nothing(*_arguments: Any) -> None:
    """Return None."""


# Return values to use when a method that returns no status fails.
SUBSTITUTES: Final[Mapping[str, BoundMethod]] = {
    "sort_key": _by_priority,
    "concerns": yes,
    "scores_alike": no,
    "epoch": nothing,
    "release_commands": _no_commands,
    "unreserve": nothing,
    "post_bind": nothing,
    "is_woken_by": yes,
}


def guarded(
    plugin: Plugin, reporter: Reporter, substitutes: Mapping[str, BoundMethod] = SUBSTITUTES
) -> Plugin:
    """Return `plugin` wrapped so that its failures are caught and its return values checked.

    If a method in `substitutes` fails, the failure is reported to `reporter`, and the substitute is
    called instead. A failure of another method is raised as a PluginFault.
    """
    name = plugin.name

    def guard(method: Method, bound_method: BoundMethod) -> BoundMethod:
        safe = checked(name, method.name, bound_method, CHECKS[method.name])
        if method.name == "candidate_rules":
            safe = _with_checked_costs(name, safe)
        instead = substitutes.get(method.name)
        if instead is None:
            return safe
        return substituted(name, method.point, safe, instead, reporter)

    return wrap_methods(plugin, guard)


def checked(plugin: str, method: str, bound_method: BoundMethod, check: Check) -> BoundMethod:
    """Return `bound_method`, wrapped so that a failure raises a PluginFault.

    A failure is an exception, or a result that `check` refuses.
    """

    def call(*arguments: Any) -> Any:
        try:
            answer = bound_method(*arguments)
        except KeyboardInterrupt:
            raise  # the user has interrupted the program
        except BaseException as cause:
            raise fault_of(plugin, method, cause) from cause
        try:
            return check(arguments, answer)
        except (TypeError, ValueError) as cause:
            raise fault_in(plugin, method, str(cause)) from cause

    return call


def substituted(
    plugin: str, point: str, bound_method: BoundMethod, instead: BoundMethod, reporter: Reporter
) -> BoundMethod:
    """Return a method that calls `bound_method`, and `instead` if that call raises a PluginFault.

    The PluginFault is reported to `reporter`.
    """

    def call(*arguments: Any) -> Any:
        try:
            return bound_method(*arguments)
        except PluginFault as fault:
            reporter.report(PluginFailed(plugin, point, str(fault)))
            return instead(*arguments)

    return call


def _with_checked_costs(plugin: str, bound_method: BoundMethod) -> BoundMethod:
    def rules(*arguments: Any) -> tuple[CandidateRule, ...]:
        return tuple(replace(rule, cost=_cost(plugin, rule)) for rule in bound_method(*arguments))

    return rules


def _cost(plugin: str, rule: CandidateRule) -> Callable[[Candidate], int]:
    where = f"the cost of rule {rule.name!r}"

    def cost(candidate: Candidate) -> int:
        try:
            found = rule.cost(candidate)
        except KeyboardInterrupt:
            raise
        except BaseException as cause:
            raise fault_of(plugin, where, cause) from cause
        if not isinstance(found, int) or not -(1 << 63) <= found < 1 << 63:
            raise fault_in(plugin, where, f"{found!r} is not an integer of 64 bits")
        return found

    return cost
