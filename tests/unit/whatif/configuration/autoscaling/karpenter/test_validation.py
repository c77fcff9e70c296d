"""Karpenter's objects from files are validated by the rules of its CustomResourceDefinitions."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.engine.autoscaling.karpenter.apis import NodeClaim, NodeOverlay, NodePool
from fairlead.whatif.configuration.autoscaling.karpenter.validation import require_valid
from fairlead.whatif.input.error import InputError


def budgets(**fields):
    return {"disruption": {"budgets": [fields]}}


def template(**spec):
    return {"template": {"spec": spec}}


def requirement(**fields):
    return template(requirements=[fields])


def pool(spec):
    return decode_as(NodePool, {"metadata": {"name": "p"}, "spec": spec})


@pytest.mark.parametrize(
    "spec",
    [
        {},
        budgets(nodes="0"),
        budgets(nodes="100%"),
        budgets(nodes="1", schedule="0 9 * * mon-fri", duration="8h30m", reasons=["Drifted"]),
        {"disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}},
        {"limits": {"cpu": "1k", "memory": "1Ti"}, "weight": 100, "replicas": 0},
        template(expireAfter="720h", terminationGracePeriod="1h30m"),
        template(taints=[{"key": "a.io/b", "value": "c", "effect": "NoExecute"}]),
        requirement(key="a", operator="Exists", minValues=50),
        requirement(key="a", operator="In", values=["x", "y"], minValues=2),
        requirement(key="a", operator="Gt", values=["3"]),
        requirement(key="a", operator="NotIn", values=[]),
    ],
)
def test_node_pools_that_a_cluster_accepts_are_accepted(spec):
    require_valid("pools.yaml", pool(spec))


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        (budgets(nodes="abc"), "disruption.budgets[0].nodes: 'abc' is not a number, or"),
        (budgets(nodes="-5"), "disruption.budgets[0].nodes: '-5' is not"),
        (budgets(nodes="101%"), "disruption.budgets[0].nodes: '101%' is not"),
        (budgets(schedule="@daily"), "disruption.budgets[0]: schedule and duration must be stated"),
        (
            budgets(schedule="noon", duration="1h"),
            "disruption.budgets[0].schedule: expected exactly 5 fields",
        ),
        (
            budgets(schedule="@every 5m", duration="1h"),
            "disruption.budgets[0].schedule: '@every 5m' is an interval, not a cron expression",
        ),
        (
            budgets(schedule="@daily", duration="soon"),
            "disruption.budgets[0].duration: 'soon' is not a duration",
        ),
        (budgets(reasons=["Old"]), "disruption.budgets[0].reasons[0]: 'Old' is not a valid value"),
        (
            {"disruption": {"consolidationPolicy": "Sometimes"}},
            "disruption.consolidationPolicy: 'Sometimes' is not a valid value",
        ),
        ({"disruption": {"consolidateAfter": "-5m"}}, "disruption.consolidateAfter: '-5m' is"),
        ({"limits": {"cpu": "many"}}, "limits.cpu: 'many': quantities must match"),
        ({"weight": 0}, "weight: 0 is not from 1 to 100"),
        ({"replicas": -1}, "replicas: -1 is negative"),
        (
            {"template": {"metadata": {"labels": {"a b": "c"}}}},
            "template.metadata.labels[a b]: name part must consist of",
        ),
        (
            template(expireAfter="999999999h"),
            "template.spec.expireAfter: '999999999h' is longer than the 292 years",
        ),
        (
            budgets(schedule="@daily", duration="999999999h"),
            "disruption.budgets[0].duration: '999999999h' is longer than the 292 years",
        ),
        (template(expireAfter="1ns"), "template.spec.expireAfter: '1ns' is not a duration"),
        (
            template(terminationGracePeriod="Never"),
            "template.spec.terminationGracePeriod: 'Never' is not a duration",
        ),
        (
            template(taints=[{"key": "a", "effect": "Foo"}]),
            "template.spec.taints[0].effect: 'Foo' is not a taint effect",
        ),
        (
            template(startupTaints=[{"key": "", "effect": "NoExecute"}]),
            "template.spec.startupTaints[0].key: name part must be non-empty",
        ),
        (
            requirement(key="a", operator="Near", values=["x"]),
            "template.spec.requirements[0].operator: 'Near' is not a valid value",
        ),
        (
            requirement(key="a b", operator="Exists"),
            "template.spec.requirements[0].key: name part must",
        ),
        (
            requirement(key="a", operator="In"),
            "template.spec.requirements[0].values: is empty, but the operator is In",
        ),
        (
            requirement(key="a", operator="Gt", values=["x"]),
            "template.spec.requirements[0].values: is not one number, which the operator Gt needs",
        ),
        (
            requirement(key="a", operator="In", values=["x"], minValues=2),
            "template.spec.requirements[0].minValues: 2 is not from 1 to 1",
        ),
        (
            requirement(key="a", operator="In", values=[f"x{n}" for n in range(60)], minValues=55),
            "template.spec.requirements[0].minValues: 55 is not from 1 to 50",
        ),
    ],
)
def test_the_invalid_field_of_a_node_pool_is_named(spec, line):
    with pytest.raises(InputError) as refusal:
        require_valid("pools.yaml", pool(spec))
    assert str(refusal.value).startswith(f"pools.yaml: NodePool p: spec.{line}")


@pytest.mark.parametrize(
    ("kind", "fields", "line"),
    [
        (NodeClaim, {"spec": {"expireAfter": "1e999"}}, "spec.expireAfter: '1e999' is not a"),
        (NodeClaim, {"spec": {"terminationGracePeriod": ""}}, "spec.terminationGracePeriod: ''"),
        (
            NodeClaim,
            {"spec": {"requirements": [{"key": "a", "operator": "Near"}]}},
            "spec.requirements[0].operator: 'Near' is not a valid value",
        ),
        (
            NodeClaim,
            {"spec": {"resources": {"requests": {"cpu": "many"}}}},
            "spec.resources.requests.cpu: 'many': quantities must match",
        ),
        (NodeClaim, {"status": {"capacity": {"cpu": "many"}}}, "status.capacity.cpu: 'many'"),
        (
            NodeClaim,
            {"metadata": {"name": "x", "creationTimestamp": "noon"}},
            "metadata.creationTimestamp: 'noon' is not an RFC 3339 timestamp",
        ),
        (
            NodeClaim,
            {
                "status": {
                    "conditions": [
                        {"type": "a", "status": "True"},
                        {"type": "b", "status": "True", "lastTransitionTime": "noon"},
                    ]
                }
            },
            "status.conditions[1].lastTransitionTime: 'noon' is not an RFC 3339 timestamp",
        ),
        (NodeOverlay, {"spec": {"price": "cheap"}}, "spec.price: 'cheap' is not a price"),
        (NodeOverlay, {"spec": {"priceAdjustment": "10"}}, "spec.priceAdjustment: '10' is not"),
        (NodeOverlay, {"spec": {"capacity": {"x/y": "-1"}}}, "spec.capacity.x/y: -1 is not from 0"),
        (NodeOverlay, {"spec": {"weight": 0}}, "spec.weight: 0 is not from 1 to 10,000"),
        (
            NodeOverlay,
            {"spec": {"requirements": [{"key": "a", "operator": "In"}]}},
            "spec.requirements[0].values: is empty",
        ),
    ],
)
def test_the_invalid_field_of_another_object_is_named(kind, fields, line):
    obj = decode_as(kind, {"metadata": {"name": "x"}, "kind": kind.__name__, **fields})
    with pytest.raises(InputError) as refusal:
        require_valid("pools.yaml", obj)
    assert str(refusal.value).startswith(f"pools.yaml: {kind.__name__} x: {line}")


def test_a_node_claim_and_an_overlay_that_a_cluster_accepts_are_accepted():
    spec = {"expireAfter": "720h", "terminationGracePeriod": "1h", "requirements": []}
    time = "2026-01-01T00:00:00Z"
    status = {"capacity": {"cpu": "2"}, "lastPodEventTime": time}
    claim = {"metadata": {"name": "c", "creationTimestamp": time}, "spec": spec, "status": status}
    require_valid("pools.yaml", decode_as(NodeClaim, claim))
    changes = {"priceAdjustment": "-10.5%", "capacity": {"x/y": 3}, "weight": 10_000}
    overlay = {"metadata": {"name": "o"}, "spec": {"price": "0.25", **changes}}
    require_valid("pools.yaml", decode_as(NodeOverlay, overlay))
