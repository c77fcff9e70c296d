"""Validates updates of a Job's status.

Most rules apply only to changed fields, so a client need not correct errors in other fields.

upstream: pkg/apis/batch/validation/validation.go:ValidateJobStatusUpdate,
pkg/registry/batch/job/strategy.go:getStatusValidationOptions
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.batch.index_interval import (
    IndexTextError,
    index_intervals,
    shared_index,
)
from fairlead.apiserver.validation.meta.field import (
    Causes,
    duplicate,
    invalid,
    non_negative,
    required,
)

_COUNTS: Final = ("active", "succeeded", "failed", "ready", "terminating")
_ENDS: Final = ("Complete", "Failed")
_TERMINAL_CONDITIONS: Final = ("Failed", "Complete", "FailureTarget")


class _StatusChange:
    """The old and the new status of a Job, and their differences."""

    def __init__(self, old: Json, new: Json) -> None:
        self.spec: Json = new["spec"]
        self.before: Json = old.get("status") or {}
        self.after: Json = new.get("status") or {}
        self.had, self.has = _true_conditions(self.before), _true_conditions(self.after)

    @property
    def is_finished(self) -> bool:
        return any(end in self.has for end in _ENDS)

    @property
    def finishes(self) -> bool:
        return self.is_finished != any(end in self.had for end in _ENDS)

    def changes(self, *names: str) -> bool:
        """Return whether at least one of the fields and conditions in `names` has changed.

        A name that begins with a capital letter is the type of a condition. A condition changes
        when it becomes or stops being "True".
        """
        return any(
            (name in self.had) != (name in self.has)
            if name[0].isupper()
            else _none_if_empty(self.before.get(name)) != _none_if_empty(self.after.get(name))
            for name in names
        )


def check_job_status(old: Json, new: Json) -> Causes:
    """Yield the errors of an update of a Job's status; `old` and `new` are whole Jobs."""
    change = _StatusChange(old, new)
    for name in _COUNTS:
        yield from non_negative(f"status.{name}", change.after.get(name) or 0)
    yield from _check_uncounted(change.after.get("uncountedTerminatedPods") or {})
    yield from _check_ends(change)
    yield from _check_times(change)
    yield from _check_finished(change)
    yield from _check_indexes(change)
    yield from _check_pods(change)
    yield from _check_success(change)
    yield from _check_reverted(change)


def _none_if_empty(value: Any) -> Any:
    """Return `value`; None if it is zero or an empty list or map."""
    return None if value in (0, [], {}) else value


def _true_conditions(status: Json) -> list[str]:
    """Return the types of the conditions whose status is "True"."""
    conditions = status.get("conditions") or ()
    return [one.get("type", "") for one in conditions if one.get("status") == "True"]


def _conditions(why: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {why}", "status.conditions")


def _check_uncounted(pods: Json) -> Causes:
    seen: set[str] = set()
    for name in ("succeeded", "failed"):
        for index, uid in enumerate(pods.get(name) or ()):
            field = f"status.uncountedTerminatedPods.{name}[{index}]"
            if not uid:
                yield invalid(field, uid, "must not be empty")
            elif uid in seen:
                yield duplicate(field, uid)
            seen.add(uid)


def _check_ends(change: _StatusChange) -> Causes:
    if "Complete" not in change.has:
        return
    if change.changes(*_ENDS) and "Failed" in change.has:
        yield _conditions("cannot set Complete=True and Failed=true conditions")
    if change.changes("Complete", "FailureTarget") and "FailureTarget" in change.has:
        yield _conditions("cannot set Complete=True and FailureTarget=true conditions")


def _check_times(change: _StatusChange) -> Causes:
    field, is_complete = "status.completionTime", "Complete" in change.has
    start, end = change.after.get("startTime"), change.after.get("completionTime")
    if change.changes("Complete", "completionTime"):
        if end is not None and not is_complete:
            why = "cannot set completionTime when there is no Complete=True condition"
            yield invalid(field, end, why)
        if end is None and is_complete:
            yield required(field, "completionTime is required for Complete jobs")
    is_ordered = start is None or end is None or end >= start
    if change.changes("startTime", "completionTime") and not is_ordered:
        yield invalid(field, end, "completionTime cannot be set before startTime")


def _check_finished(change: _StatusChange) -> Causes:
    if change.changes("Failed", "FailureTarget") and _lacks(change, "Failed", "FailureTarget"):
        why = "cannot set Failed=True condition without the FailureTarget=true condition"
        yield _conditions(why)
    if change.changes("Complete", "SuccessCriteriaMet") and _lacks(
        change, "Complete", "SuccessCriteriaMet"
    ):
        why = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        yield _conditions(why)
    if not change.is_finished:
        return
    active, pods = (
        change.after.get("active") or 0,
        change.after.get("uncountedTerminatedPods") or {},
    )
    if active > 0 and (change.finishes or change.changes("active")):
        yield invalid("status.active", active, "active>0 is invalid for finished job")
    if change.after.get("startTime") is None and (change.finishes or change.changes("startTime")):
        yield required("status.startTime", "startTime is required for finished job")
    is_counted = not pods.get("succeeded") and not pods.get("failed")
    if not is_counted and (change.finishes or change.changes("uncountedTerminatedPods")):
        why = "uncountedTerminatedPods needs to be empty for finished job"
        shown = {"Succeeded": pods.get("succeeded"), "Failed": pods.get("failed")}
        yield invalid("status.uncountedTerminatedPods", shown, why)


def _lacks(change: _StatusChange, end: str, reason: str) -> bool:
    return end in change.has and reason not in change.has


def _check_indexes(change: _StatusChange) -> Causes:
    done, failed = change.after.get("completedIndexes") or "", change.after.get("failedIndexes")
    completions, per_index = change.spec.get("completions"), change.spec.get("backoffLimitPerIndex")
    news_done, news_failed = change.changes("completedIndexes"), change.changes("failedIndexes")
    if news_done and completions is not None:
        yield from _check_format("completedIndexes", done, completions)
    if news_failed and None not in (completions, per_index, failed):
        yield from _check_format("failedIndexes", failed or "", completions or 0)
    if news_done and done and change.spec.get("completionMode") != "Indexed":
        why = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield invalid("status.completedIndexes", done, why)
    if news_failed and failed is not None and per_index is None:
        why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield invalid("status.failedIndexes", failed, why)
    if (news_done or news_failed) and completions is not None and done and failed:
        yield from _check_overlap(done, failed, completions)


def _check_format(name: str, text: str, completions: int) -> Causes:
    try:
        index_intervals(text, completions)
    except IndexTextError as cause:
        yield invalid(f"status.{name}", text, f"error parsing {name}: {cause}")


def _check_overlap(done: str, failed: str, completions: int) -> Causes:
    shared = shared_index(done, failed, completions)
    if shared is not None:
        why = f"failedIndexes and completedIndexes overlap at index: {shared}"
        yield invalid("status.failedIndexes", failed, why)


def _check_pods(change: _StatusChange) -> Causes:
    ending, ready = change.after.get("terminating") or 0, change.after.get("ready") or 0
    if change.is_finished and ending > 0 and (change.finishes or change.changes("terminating")):
        yield invalid("status.terminating", ending, "terminating>0 is invalid for finished job")
    if change.changes("ready", "active") and ready > (change.after.get("active") or 0):
        yield invalid("status.ready", ready, "cannot set more ready pods than active")


def _check_success(change: _StatusChange) -> Causes:
    if "SuccessCriteriaMet" in change.has:
        if "Failed" in change.has:
            yield _conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions")
        if "FailureTarget" in change.has:
            why = "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"
            yield _conditions(why)
    elif change.spec.get("successPolicy") is not None and "Complete" in change.has:
        why = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        yield _conditions(why)


def _check_reverted(change: _StatusChange) -> Causes:
    for kind in _TERMINAL_CONDITIONS:
        if kind in change.had and kind not in change.has:
            yield _conditions(f"cannot disable the terminal {kind}=True condition")
    spec = change.spec
    is_elastic = spec.get("completionMode") == "Indexed" and (
        spec.get("completions") == spec.get("parallelism")
    )
    for name in ("failed", *(() if is_elastic else ("succeeded",))):
        count = change.after.get(name) or 0
        if count < (change.before.get(name) or 0):
            yield invalid(f"status.{name}", count, f"cannot decrease the {name} counter")
    had, has = change.before.get("completionTime"), change.after.get("completionTime")
    if None not in (had, has) and had != has:
        yield invalid("status.completionTime", has, "completionTime cannot be mutated")
    is_started = change.before.get("startTime") is not None and not spec.get("suspend")
    if is_started and change.changes("startTime"):
        yield required("status.startTime", "startTime cannot be removed for unsuspended job")
    if "SuccessCriteriaMet" in change.had and "SuccessCriteriaMet" not in change.has:
        yield _conditions("cannot disable the SuccessCriteriaMet=True condition")
    if "Complete" in change.had and _is_added(change, "SuccessCriteriaMet"):
        why = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        yield _conditions(why)


def _is_added(change: _StatusChange, kind: str) -> bool:
    return kind in change.has and kind not in change.had
