"""Jobs select their pods by labels that nobody else has.

upstream: pkg/registry/batch/job/strategy.go:generateSelector
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.error import invalid as refused
from fairlead.apiserver.kind import JOB
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.validation.apps.workload import MISMATCH
from fairlead.apiserver.validation.batch.job_update import check_job_selector
from fairlead.apiserver.validation.meta.field import Causes, invalid
from fairlead.apiserver.validation.meta.object_meta import check_labels

CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
JOB_NAME: Final = "batch.kubernetes.io/job-name"


def with_own_labels(job: Json, _: Storage) -> Json:
    """A new Job; one with `manualSelector` sees to its selector itself."""
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
    # A job that has labels has only those. Where they are the template's by default, upstream's
    # two are one map, which a generated name copies.
    if not labels:
        meta = {**meta, "labels": own}
    elif labels is pods_meta.get("labels") and not meta.get("generateName"):
        meta = {**meta, "labels": template["metadata"]["labels"]}
    made = {**job, "metadata": meta, "spec": spec}
    _refuse(made, _own_causes(made))
    return made


def _own_causes(job: Json) -> Causes:
    """What is wrong with labels and selector once the server's own are among them."""
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
