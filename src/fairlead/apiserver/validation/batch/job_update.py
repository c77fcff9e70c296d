"""Updates of Jobs: immutable fields, and the template of a suspended Job.

upstream: pkg/apis/batch/validation/validation.go:ValidateJobSpecUpdate
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.api.selector import selector_matches
from fairlead.apiserver.validation.apps.workload import MISMATCH
from fairlead.apiserver.validation.meta.change_text import internal_of
from fairlead.apiserver.validation.meta.field import Causes, invalid, required
from fairlead.apiserver.validation.meta.format import IMMUTABLE, check_unchanged, label_selector

IN_TANDEM: Final = "can only be modified in tandem with spec.parallelism"
# Immutable fields of a Job's spec, and the types as which refusals print them.
_FIXED_OF_JOB: Final = (
    ("completionMode", ""),
    ("podFailurePolicy", "batch.v1.PodFailurePolicy"),
    ("backoffLimitPerIndex", ""),
    ("managedBy", ""),
    ("successPolicy", "batch.v1.SuccessPolicy"),
)


def check_job_selector(spec: Json) -> Causes:
    """The selector matches the template's labels."""
    selector, labels = spec.get("selector"), spec["template"]["metadata"].get("labels")
    if selector is None:
        yield required("spec.selector")
    if not selector_matches(label_selector(selector), labels or {}):
        yield invalid("spec.template.metadata.labels", labels, MISMATCH)


def check_job_update(old: Json, new: Json) -> Causes:
    """What may not change in a Job."""
    # upstream: pkg/apis/batch/validation/validation.go:ValidateJobSpecUpdate
    before, after = old["spec"], new["spec"]
    wrong = list(check_job_selector(after))
    yield from (*wrong, *wrong)  # upstream looks twice
    yield from _check_completions(before, after)
    yield from check_unchanged("spec.selector", before.get("selector"), after.get("selector"))
    is_waiting = before.get("suspend") and "startTime" not in (old.get("status") or {})
    was, shall = before["template"], after["template"]
    if is_waiting:
        was = _with_directions(was, shall)
    shape = "core.v1.PodTemplateSpec"
    if internal_of(shape, was) != internal_of(shape, shall):
        yield invalid("spec.template", internal_of(shape, shall), IMMUTABLE)
    for key, shape in _FIXED_OF_JOB:
        yield from check_unchanged(f"spec.{key}", before.get(key), after.get(key), shape)


def _check_completions(before: Json, after: Json) -> Causes:
    had, wants = before.get("completions"), after.get("completions")
    if after.get("completionMode") != "Indexed":
        yield from check_unchanged("spec.completions", had, wants)
    elif wants not in (had, None, after.get("parallelism")):
        yield invalid("spec.completions", wants, IN_TANDEM)


def _with_directions(was: Json, shall: Json) -> Json:
    """`was`, the template of a suspended Job, with the scheduling directives of `shall`."""
    # upstream: validation.go:validatePodTemplateUpdate
    spec, wanted = dict(was["spec"]), shall["spec"]
    for key in ("nodeSelector", "tolerations", "schedulingGates"):
        spec[key] = wanted.get(key)
    affinity = dict(spec.get("affinity") or {})
    affinity["nodeAffinity"] = (wanted.get("affinity") or {}).get("nodeAffinity")
    if any(affinity.values()) or wanted.get("affinity") is not None:
        spec["affinity"] = affinity
    else:
        spec["affinity"] = None
    meta = dict(was["metadata"])
    for key in ("labels", "annotations"):
        meta.pop(key, None)
        if shall["metadata"].get(key) is not None:
            meta[key] = shall["metadata"][key]
    return {**was, "metadata": meta, "spec": spec}
