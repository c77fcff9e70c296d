"""The edits of topology spread constraints that next steps suggest."""

from __future__ import annotations

import json

import pytest

from fairlead.whatif.next_steps.spread_rule import SpreadRule, spread_rules
from fairlead.whatif.outcome.run_outcome import PodEnd
from fairlead.whatif.outcome.workload import WorkloadRef

HARD = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
SOFT = {"topologyKey": "host", "maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway"}


def rule(*constraints):
    return SpreadRule(WorkloadRef("Deployment", "shop", "web"), 1, constraints=constraints)


def edited(edit):
    target, _, value = edit.partition("=")
    assert target == "deploy/shop/web:spec.template.spec.topologySpreadConstraints"
    return json.loads(value)


def test_an_edit_changes_only_the_constraints_that_keep_pods_pending():
    """A preference must not have minDomains."""
    found = rule({**HARD, "minDomains": 3}, SOFT)
    anyway, honored = edited(found.with_anyway()), edited(found.with_taints_honored({"zone": 3}))
    assert anyway == [{**HARD, "whenUnsatisfiable": "ScheduleAnyway"}, SOFT]
    assert honored == [{**HARD, "minDomains": 3, "nodeTaintsPolicy": "Honor"}, SOFT]
    assert edited(found.with_taints_honored({"zone": 2})) == [
        {**HARD, "nodeTaintsPolicy": "Honor"},
        SOFT,
    ]
    domains = edited(found.without_min_domains())
    assert domains == [{**HARD, "nodeTaintsPolicy": "Honor"}, SOFT]
    assert found.has_min_domains
    assert not rule({**HARD, "minDomains": 1}, {**SOFT, "minDomains": 3}).has_min_domains
    assert found.words == (
        "topology spread constraint (zone, maxSkew 1, minDomains 3, DoNotSchedule)"
    )
    assert rule(HARD).words == "topology spread constraint (zone, maxSkew 1, DoNotSchedule)"


@pytest.mark.parametrize(
    ("constraints", "ignores"),
    [
        pytest.param([HARD], True, id="the default is Ignore"),
        pytest.param([{**HARD, "nodeTaintsPolicy": "Honor"}], False, id="Honor"),
        pytest.param([{**HARD, "nodeTaintsPolicy": "Honor"}, SOFT], False, id="a preference"),
    ],
)
def test_constraints_ignore_taints_unless_they_honor_them(constraints, ignores):
    assert rule(*constraints).ignores_taints == ignores


REPELS = "node(s) didn't match pod anti-affinity rules"


@pytest.mark.parametrize(
    ("message", "needs_preemption"),
    [
        pytest.param(
            f"0/2 nodes are available: 1 Insufficient cpu, 1 {REPELS}.", [False], id="a node"
        ),
        pytest.param(
            "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: "
            f"2 {REPELS}.",
            [True],
            id="preemption",
        ),
    ],
)
def test_a_rule_that_rejects_pods_after_preemption_keeps_them_off_nodes_without_room(
    message, needs_preemption
):
    workload = WorkloadRef("StatefulSet", "shop", "db")
    terms = [{"topologyKey": "kubernetes.io/hostname"}]
    spec = {
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    }
    pod = PodEnd(namespace="shop", name="db-0", requests={}, owner=workload, reason=message)
    assert [
        one.needs_preemption for one in spread_rules([pod], {workload: spec})
    ] == needs_preemption
