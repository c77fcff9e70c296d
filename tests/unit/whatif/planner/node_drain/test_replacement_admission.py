"""Which pods the API server would not admit again."""

from __future__ import annotations

import pytest
from tests.unit.whatif.planner.conftest import deployment, least_cpu, pod_quota

from fairlead.whatif.planner.node_drain.replacement_admission import (
    ReplacementAdmission,
    edit_of_refusal,
    refused_pod_notes,
)

WHY = "minimum cpu usage per Container is 200m, but request is 100m"


def test_a_note_for_each_reason_names_the_workloads(planner, make):
    small = [pod for name in "xy" for pod in deployment(make, name, ["a", "b"], cpu="100m")]
    large = deployment(make, "large", ["a"])
    model = planner(make.node("a"), make.node("b"), *small, *large, least_cpu("200m")).model
    assert list(refused_pod_notes(model, ["a", "b"])) == [
        (
            "4 pods of deploy/default/x and deploy/default/y are counted here, but the API server "
            f"would refuse to create them again on other nodes ({WHY})."
        )
    ]
    [note] = refused_pod_notes(model, ["b"])
    assert note.startswith("2 pods of deploy/default/x")


def test_pods_without_a_controller_in_the_dump_are_checked_against_quotas_only(planner, make):
    """Their template is unknown, so it is unknown whether a LimitRange would refuse it."""
    pod = make.pod("p", cpu="100m", node_name="a", owner="gone")
    made = planner(make.node("a"), pod, least_cpu("200m"))
    assert made.refused(made.evicted("a")) == {}
    made = planner(make.node("a"), pod, pod_quota("0"))
    [why] = made.refused(made.evicted("a")).values()
    assert edit_of_refusal("default", why) == "raise quota default/q"


@pytest.mark.parametrize("count", ["1", "0"])
def test_a_quota_may_refuse_one_more_pod_but_not_a_replacement(planner, make, count):
    made = planner(make.node("a"), *deployment(make, "web", ["a"]), pod_quota(count))
    [pod] = made.evicted("a")
    admission = ReplacementAdmission(made.model)
    assert bool(admission.refusal(pod)) is (count == "0")
    assert admission.refusal_of_another(pod)
