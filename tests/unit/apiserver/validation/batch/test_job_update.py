"""Jobs that replace Jobs."""

from __future__ import annotations

from typing import Any

from fairlead.apiserver.validation.batch.job import check_job_selector, check_job_update

TEMPLATE: dict[str, Any] = {"metadata": {}, "spec": {"containers": []}}
SELECTOR = {"matchLabels": {"a": "b"}}


def texts(causes):
    return [str(cause).split(": `")[0] for cause in causes]


def test_a_job_without_its_selector_finds_nothing():
    assert texts(check_job_selector({"template": TEMPLATE})) == [
        "spec.selector: Required value",
        "spec.template.metadata.labels: Invalid value: null",
    ]


def test_a_selector_that_finds_the_jobs_pods():
    labelled = {**TEMPLATE, "metadata": {"labels": {"a": "b"}}}
    assert not texts(check_job_selector({"selector": SELECTOR, "template": labelled}))


def test_an_update_that_forgets_the_selector():
    before = {"spec": {"selector": SELECTOR, "template": TEMPLATE}}
    causes = texts(check_job_update(before, {"spec": {"template": TEMPLATE}}))
    assert causes[0] == "spec.selector: Required value"
    assert causes[-1] == "spec.selector: Invalid value: null: field is immutable"
