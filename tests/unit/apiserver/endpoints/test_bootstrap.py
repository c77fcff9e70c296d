"""Objects that every API server creates at start."""

from __future__ import annotations

from collections import Counter

import pytest

from fairlead.apiserver.endpoints.bootstrap import control_plane_objects
from fairlead.apiserver.endpoints.post_start_hook.status_reconcilers import BUILT_IN_LEVELS
from fairlead.apiserver.kind import KINDS

MADE = list(control_plane_objects())


def of_kind(kind):
    return {one["metadata"]["name"]: one for one in MADE if one["kind"] == kind}


def test_every_object_is_created_once():
    counted = Counter((one["kind"], one["metadata"]["name"]) for one in MADE)
    assert set(counted.values()) == {1}


def test_every_stored_kubernetes_group_has_an_api_service():
    """The group of APIServices itself has none, as in upstream."""
    stored = {
        (kind.group, kind.version)
        for kind in KINDS
        if ("." not in kind.group or kind.group.endswith(".k8s.io")) and "x-k8s" not in kind.group
    }
    stored = {(group, version) for group, version in stored if version in ("v1", "v2")}
    expected = {(one["spec"].get("group", ""), one["spec"]["version"]) for one in MADE[:21]}
    assert stored - expected == {("apiregistration.k8s.io", "v1")}


def test_the_api_service_of_the_core_group_has_no_group():
    core = of_kind("APIService")["v1."]
    assert core["spec"] == {
        "version": "v1",
        "groupPriorityMinimum": 18_000,
        "versionPriority": 1,
    }


def test_every_flow_schema_has_an_existing_priority_level():
    levels = of_kind("PriorityLevelConfiguration")
    named = {
        one["spec"]["priorityLevelConfiguration"]["name"] for one in of_kind("FlowSchema").values()
    }
    assert named == set(levels) == set(BUILT_IN_LEVELS)


@pytest.mark.parametrize("name", ["exempt", "catch-all", "system-node-high", "probes"])
def test_flow_schemas_have_subjects(name):
    [rule] = of_kind("FlowSchema")[name]["spec"]["rules"]
    assert rule["subjects"]
    assert rule.get("resourceRules") or rule.get("nonResourceRules")
