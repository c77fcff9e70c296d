"""A no-op write bumps the resourceVersion if the stored object lacked a default."""

from __future__ import annotations

import pytest

CLAIMS = "/api/v1/namespaces/n/persistentvolumeclaims"
JOBS = "/apis/batch/v1/namespaces/n/jobs"
CLAIM = {
    "metadata": {"name": "a"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
POD = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
JOB = {"metadata": {"name": "a"}, "spec": {"template": {"spec": POD}}}
TEMPLATE = {"metadata": {"labels": {"x": "y"}}, "spec": POD}


@pytest.fixture
def versions(api):
    """Creates an object and puts it back unchanged; returns the increases of its version."""
    api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})

    def put_back(url, manifest, times=2):
        created = api.ask("POST", url, manifest).json
        found = [int(created["metadata"]["resourceVersion"])]
        for _ in range(times):
            last = api.ask("GET", f"{url}/a").json
            answer = api.ask("PUT", f"{url}/a", last)
            found.append(int(answer.json["metadata"]["resourceVersion"]) - found[0])
        return found[1:]

    return put_back


def test_a_claim_is_written_by_its_first_update(versions):
    """The default phase is not stored at creation, as recorded from upstream 1.36.2."""
    assert versions(CLAIMS, CLAIM) == [1, 1]


def test_a_job_without_labels_is_written_by_its_first_update(versions):
    """The default labels are not stored at creation, as recorded from upstream 1.36.2."""
    assert versions(JOBS, JOB) == [1, 1]


def test_a_job_with_labels_is_not_written_by_a_no_op_update(versions):
    """The labels are stored at creation."""
    labelled = {**JOB, "metadata": {"name": "a", "labels": {"l": "1"}}}
    assert versions(JOBS, labelled) == [0, 0]


def test_a_job_with_template_labels_is_not_written_by_a_no_op_update(versions):
    """The labels that are copied from the template are stored at creation."""
    assert versions(JOBS, {**JOB, "spec": {"template": TEMPLATE}}) == [0, 0]


def test_a_dry_run_update_writes_nothing(api, versions):
    """The next update that is not a dry run still writes."""
    versions(CLAIMS, CLAIM, times=0)
    before = api.ask("GET", f"{CLAIMS}/a").json
    tried = api.ask("PUT", f"{CLAIMS}/a?dryRun=All", before).json
    assert tried["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    written = api.ask("PUT", f"{CLAIMS}/a", before).json
    assert written["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]


def test_a_recreated_object_is_written_by_its_first_update(api, versions):
    """The state of the deleted claim does not affect the new claim of the same name."""
    versions(CLAIMS, CLAIM, times=0)
    api.ask("PATCH", f"{CLAIMS}/a", {"metadata": {"finalizers": None}}, content_type=_MERGE)
    api.ask("DELETE", f"{CLAIMS}/a")
    assert versions(CLAIMS, CLAIM) == [1, 1]


def test_a_job_gets_the_labels_of_its_template(api, versions):
    """Labels that the server adds are included, except for a Job with a generated name."""
    versions(JOBS, {**JOB, "spec": {"template": TEMPLATE}}, times=0)
    named = api.ask("GET", f"{JOBS}/a").json
    assert named["metadata"]["labels"] == named["spec"]["template"]["metadata"]["labels"]
    assert "controller-uid" in named["metadata"]["labels"]
    generated = {"metadata": {"generateName": "a-"}, "spec": {"template": TEMPLATE}}
    assert api.ask("POST", JOBS, generated).json["metadata"]["labels"] == {"x": "y"}


_MERGE = "application/merge-patch+json"
