"""The strategies of the API group `batch`. The server adds labels and a selector to each Job.

upstream: pkg/registry/batch/{job,cronjob}/strategy.go
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.error import invalid as refused
from fairlead.apiserver.kind import JOB
from fairlead.apiserver.registry.strategy import (
    GarbageCollection,
    PreparationContext,
    ResourceStrategy,
    text_field,
)
from fairlead.apiserver.registry.warning.workload import naming_workload_warnings
from fairlead.apiserver.validation.apps.workload import MISMATCH
from fairlead.apiserver.validation.batch import job
from fairlead.apiserver.validation.batch.job import check_job_selector, check_job_update
from fairlead.apiserver.validation.batch.job_status import check_job_status
from fairlead.apiserver.validation.meta.field import Causes, invalid
from fairlead.apiserver.validation.meta.format import dns_subdomain_problems
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check
from fairlead.apiserver.validation.meta.object_meta import check_labels

CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
JOB_NAME: Final = "batch.kubernetes.io/job-name"
COMPLETIONS_SOFT_MAX: Final = 100_000
PARALLELISM_SOFT_MAX: Final = 10_000
_TOO_MANY_INDEXES: Final = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than "
    "10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
)
_ORPHANED_PODS: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background "
    "to remove them or set propagationPolicy=Orphan to suppress this warning"
)


def _new_job(job: Json, _: PreparationContext) -> Json:
    """Return `job` with generated labels and selector, unless `manualSelector` is set."""
    # upstream: job/strategy.go:generateSelector
    meta, spec = job["metadata"], job["spec"]
    if spec.get("manualSelector"):
        _refuse(job, check_job_selector(spec))
        return job
    own = {
        CONTROLLER_UID: meta["uid"],
        JOB_NAME: meta["name"],
        "controller-uid": meta["uid"],
        "job-name": meta["name"],
    }
    template = spec.get("template", {})
    pods_meta = template.get("metadata", {})
    template = {
        **template,
        "metadata": {**pods_meta, "labels": {**pods_meta.get("labels", {}), **own}},
    }
    selector = spec.get("selector") or {}
    labels = {**selector.get("matchLabels", {}), CONTROLLER_UID: meta["uid"]}
    spec = {**spec, "selector": {**selector, "matchLabels": labels}, "template": template}
    labels = meta.get("labels")
    # Labels that the client gave to the Job do not change. If the Job's labels defaulted to those
    # of its template, upstream uses one map for both, so both get the generated labels.
    if not labels:
        meta = {**meta, "labels": own}
    elif labels is pods_meta.get("labels") and not meta.get("generateName"):
        meta = {**meta, "labels": template["metadata"]["labels"]}
    made = {**job, "metadata": meta, "spec": spec}
    _refuse(made, _own_causes(made))
    return made


def _own_causes(job: Json) -> Causes:
    """Yield the errors of the labels and selector that the server adds to `job`."""
    # upstream: pkg/apis/batch/validation/validation.go:validateGeneratedSelector
    spec = job["spec"]
    labels = spec["template"]["metadata"]["labels"]
    if set(spec["selector"]["matchLabels"]) != {CONTROLLER_UID}:
        yield invalid("spec.selector", spec["selector"], "`selector` not auto-generated")
    if not spec["selector"]["matchLabels"].items() <= labels.items():
        yield invalid("spec.template.metadata.labels", labels, MISMATCH)
    yield from check_labels("spec.template.labels", labels)


def _refuse(job: Json, causes: Causes) -> None:
    found = tuple(causes)
    if found:
        meta = job["metadata"]
        raise refused(JOB, meta.get("namespace", ""), meta["name"], found)


def _has_unpersisted_labels(sent: Json, stored: Json) -> bool:
    """Return whether the client sent a Job without labels and the stored Job has labels."""
    had, has = (obj["metadata"].get("labels") for obj in (sent, stored))
    return bool(has) and not had


def _job_warnings(old: Json | None, new: Json) -> Iterator[str]:
    yield from naming_workload_warnings("spec.template", old, new)
    if old is None or old.get("spec") != new.get("spec"):
        yield from _index_warnings(new["spec"])


def _index_warnings(spec: Json) -> Iterator[str]:
    completions, parallelism = spec.get("completions") or 0, spec.get("parallelism") or 0
    if spec.get("completionMode") != "Indexed":
        return
    if completions > COMPLETIONS_SOFT_MAX and parallelism > PARALLELISM_SOFT_MAX:
        yield f"spec: {_TOO_MANY_INDEXES}"


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    "cronjobs.batch": ResourceStrategy(
        rules=KindRules(
            name=dns_subdomain_problems,
            metadata_validations=0,
            new=json_check(job.check_new_cron_job),
            changed=json_check(job.check_cron_job),
        ),
        null_when_empty=(("spec", "jobTemplate", "spec", "podFailurePolicy", "rules"),),
        warnings=partial(naming_workload_warnings, "spec.jobTemplate.spec.template"),
    ),
    JOB.resource: ResourceStrategy(
        prepare_for_create=_new_job,
        has_unpersisted_defaults=_has_unpersisted_labels,
        rules=KindRules(
            name=dns_subdomain_problems,
            new=job.check_job,
            update=check_job_update,
            reports_changed_twice=True,
            subresources={"status": check_job_status},
        ),
        garbage_collection=GarbageCollection.ORPHAN_DEPENDENTS,
        warning_without_policy=_ORPHANED_PODS,
        null_when_empty=(("spec", "podFailurePolicy", "rules"),),
        warnings=_job_warnings,
        selectable_fields={"status.successful": text_field("status", "succeeded", absent="0")},
        unselectable_field='field label "{}" not supported for Job',
    ),
}
