"""Jobs select their pods by labels that nobody else has.

upstream: pkg/registry/batch/job/strategy.go:generateSelector
"""

from __future__ import annotations

from typing import Final

from fairlead.apiserver.storage import Json, Storage

CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
JOB_NAME: Final = "batch.kubernetes.io/job-name"


def with_own_labels(job: Json, _: Storage) -> Json:
    """A new Job; one with `manualSelector` sees to its selector itself."""
    meta, spec = job["metadata"], job["spec"]
    if spec.get("manualSelector"):
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
    if not meta.get("labels"):  # a job that has labels has only those
        meta = {**meta, "labels": own}
    return {**job, "metadata": meta, "spec": spec}
