"""What the status of a Job may become.

Whoever writes it may leave a fault that was there already: most is asked only of what changes.

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
_LASTING: Final = ("Failed", "Complete", "FailureTarget")


class _Look:
    """The status of a Job, and how it differs from the one before."""

    def __init__(self, old: Json, new: Json) -> None:
        self.spec: Json = new["spec"]
        self.before: Json = old.get("status") or {}
        self.after: Json = new.get("status") or {}
        self.had, self.has = _truths(self.before), _truths(self.after)

    @property
    def is_finished(self) -> bool:
        return any(end in self.has for end in _ENDS)

    @property
    def finishes(self) -> bool:
        return self.is_finished != any(end in self.had for end in _ENDS)

    def changes(self, *names: str) -> bool:
        """Whether one of these fields, or conditions, is other than before."""
        return any(
            (name in self.had) != (name in self.has)
            if name[0].isupper()
            else _said(self.before.get(name)) != _said(self.after.get(name))
            for name in names
        )


def check_job_status(old: Json, new: Json) -> Causes:
    """The status of `new`, a Job that was `old`."""
    look = _Look(old, new)
    for name in _COUNTS:
        yield from non_negative(f"status.{name}", look.after.get(name) or 0)
    yield from _check_uncounted(look.after.get("uncountedTerminatedPods") or {})
    yield from _check_ends(look)
    yield from _check_times(look)
    yield from _check_finished(look)
    yield from _check_indexes(look)
    yield from _check_pods(look)
    yield from _check_success(look)
    yield from _check_undone(look)


def _said(value: Any) -> Any:
    """Nothing counted and nothing listed is as good as nothing."""
    return None if value in (0, [], {}) else value


def _truths(status: Json) -> list[str]:
    """The types of conditions that hold."""
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


def _check_ends(look: _Look) -> Causes:
    if "Complete" not in look.has:
        return
    if look.changes(*_ENDS) and "Failed" in look.has:
        yield _conditions("cannot set Complete=True and Failed=true conditions")
    if look.changes("Complete", "FailureTarget") and "FailureTarget" in look.has:
        yield _conditions("cannot set Complete=True and FailureTarget=true conditions")


def _check_times(look: _Look) -> Causes:
    field, is_complete = "status.completionTime", "Complete" in look.has
    start, end = look.after.get("startTime"), look.after.get("completionTime")
    if look.changes("Complete", "completionTime"):
        if end is not None and not is_complete:
            why = "cannot set completionTime when there is no Complete=True condition"
            yield invalid(field, end, why)
        if end is None and is_complete:
            yield required(field, "completionTime is required for Complete jobs")
    is_ordered = start is None or end is None or end >= start
    if look.changes("startTime", "completionTime") and not is_ordered:
        yield invalid(field, end, "completionTime cannot be set before startTime")


def _check_finished(look: _Look) -> Causes:
    if look.changes("Failed", "FailureTarget") and _lacks(look, "Failed", "FailureTarget"):
        why = "cannot set Failed=True condition without the FailureTarget=true condition"
        yield _conditions(why)
    if look.changes("Complete", "SuccessCriteriaMet") and _lacks(
        look, "Complete", "SuccessCriteriaMet"
    ):
        why = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        yield _conditions(why)
    if not look.is_finished:
        return
    active, pods = look.after.get("active") or 0, look.after.get("uncountedTerminatedPods") or {}
    if active > 0 and (look.finishes or look.changes("active")):
        yield invalid("status.active", active, "active>0 is invalid for finished job")
    if look.after.get("startTime") is None and (look.finishes or look.changes("startTime")):
        yield required("status.startTime", "startTime is required for finished job")
    is_counted = not pods.get("succeeded") and not pods.get("failed")
    if not is_counted and (look.finishes or look.changes("uncountedTerminatedPods")):
        why = "uncountedTerminatedPods needs to be empty for finished job"
        shown = {"Succeeded": pods.get("succeeded"), "Failed": pods.get("failed")}
        yield invalid("status.uncountedTerminatedPods", shown, why)


def _lacks(look: _Look, end: str, reason: str) -> bool:
    return end in look.has and reason not in look.has


def _check_indexes(look: _Look) -> Causes:
    done, failed = look.after.get("completedIndexes") or "", look.after.get("failedIndexes")
    completions, per_index = look.spec.get("completions"), look.spec.get("backoffLimitPerIndex")
    news_done, news_failed = look.changes("completedIndexes"), look.changes("failedIndexes")
    if news_done and completions is not None:
        yield from _check_format("completedIndexes", done, completions)
    if news_failed and None not in (completions, per_index, failed):
        yield from _check_format("failedIndexes", failed or "", completions or 0)
    if news_done and done and look.spec.get("completionMode") != "Indexed":
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


def _check_pods(look: _Look) -> Causes:
    ending, ready = look.after.get("terminating") or 0, look.after.get("ready") or 0
    if look.is_finished and ending > 0 and (look.finishes or look.changes("terminating")):
        yield invalid("status.terminating", ending, "terminating>0 is invalid for finished job")
    if look.changes("ready", "active") and ready > (look.after.get("active") or 0):
        yield invalid("status.ready", ready, "cannot set more ready pods than active")


def _check_success(look: _Look) -> Causes:
    if "SuccessCriteriaMet" in look.has:
        if "Failed" in look.has:
            yield _conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions")
        if "FailureTarget" in look.has:
            why = "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"
            yield _conditions(why)
    elif look.spec.get("successPolicy") is not None and "Complete" in look.has:
        why = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        yield _conditions(why)


def _check_undone(look: _Look) -> Causes:
    for kind in _LASTING:
        if kind in look.had and kind not in look.has:
            yield _conditions(f"cannot disable the terminal {kind}=True condition")
    spec = look.spec
    is_elastic = spec.get("completionMode") == "Indexed" and (
        spec.get("completions") == spec.get("parallelism")
    )
    for name in ("failed", *(() if is_elastic else ("succeeded",))):
        count = look.after.get(name) or 0
        if count < (look.before.get(name) or 0):
            yield invalid(f"status.{name}", count, f"cannot decrease the {name} counter")
    had, has = look.before.get("completionTime"), look.after.get("completionTime")
    if None not in (had, has) and had != has:
        yield invalid("status.completionTime", has, "completionTime cannot be mutated")
    is_started = look.before.get("startTime") is not None and not spec.get("suspend")
    if is_started and look.changes("startTime"):
        yield required("status.startTime", "startTime cannot be removed for unsuspended job")
    if "SuccessCriteriaMet" in look.had and "SuccessCriteriaMet" not in look.has:
        yield _conditions("cannot disable the SuccessCriteriaMet=True condition")
    if "Complete" in look.had and _lately(look, "SuccessCriteriaMet"):
        why = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        yield _conditions(why)


def _lately(look: _Look, kind: str) -> bool:
    return kind in look.has and kind not in look.had
