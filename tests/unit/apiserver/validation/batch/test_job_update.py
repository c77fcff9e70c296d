"""Validation of Job selectors and of updates of Jobs."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.apiserver.validation.batch.job import check_job_selector, check_job_update

TEMPLATE: dict[str, Any] = {"metadata": {}, "spec": {"containers": []}}
SELECTOR = {"matchLabels": {"a": "b"}}


def texts(causes):
    return [str(cause).split(": `")[0] for cause in causes]


def test_a_job_without_a_selector_is_refused():
    assert texts(check_job_selector({"template": TEMPLATE})) == [
        "spec.selector: Required value",
        "spec.template.metadata.labels: Invalid value: null",
    ]


def test_a_selector_that_matches_the_template_is_accepted():
    labelled = {**TEMPLATE, "metadata": {"labels": {"a": "b"}}}
    assert not texts(check_job_selector({"selector": SELECTOR, "template": labelled}))


def test_an_update_without_the_selector_is_refused():
    before = {"spec": {"selector": SELECTOR, "template": TEMPLATE}}
    causes = texts(check_job_update(before, {"spec": {"template": TEMPLATE}}))
    assert causes[0] == "spec.selector: Required value"
    assert causes[-1] == "spec.selector: Invalid value: null: field is immutable"


# --- suspended Jobs ------------------------------------------------------------------------------


def template(cpu="1", image="i", **spec):
    containers = [{"name": "c", "image": image, "resources": {"requests": {"cpu": cpu}}}]
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers, **spec}}


def job(status=None, *, suspend=True, **changed):
    spec = {"selector": SELECTOR, "template": template(**changed), "suspend": suspend}
    return {"spec": spec, "status": status or {}}


STARTED = {"startTime": "2026-01-01T00:00:00Z"}
STOPPED = {**STARTED, "conditions": [{"type": "Suspended", "status": "True"}]}


@pytest.mark.parametrize(
    ("old", "changes", "is_allowed"),
    [
        (job(), {"cpu": "2"}, True),
        (job(), {"nodeSelector": {"disk": "ssd"}}, True),
        (job(), {"image": "other"}, False),
        (job(suspend=False), {"cpu": "2"}, False),
        (job(STARTED), {"cpu": "2"}, False),
        (job(STARTED), {"nodeSelector": {"disk": "ssd"}}, False),
        (job(STOPPED), {"cpu": "2"}, True),
        (job(STOPPED), {"nodeSelector": {"disk": "ssd"}}, True),
        (job({**STOPPED, "active": 1}), {"cpu": "2"}, False),
    ],
)
def test_allowed_template_changes_of_a_suspended_job(old, changes, is_allowed):
    """Scheduling directives and resources, after its pods are gone (validationOptionsForJob)."""
    new = job(suspend=old["spec"]["suspend"], **changes)
    found = texts(check_job_update(old, new))
    assert found == [] if is_allowed else found[0].startswith("spec.template: Invalid value")
