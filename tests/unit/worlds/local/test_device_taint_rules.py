"""DeviceTaintRules in a local cluster: defaults, validation and effects."""

from __future__ import annotations

import pytest

from fairlead.engine.configuration.release import release_of

GROUP = "/apis/resource.k8s.io"
RULES = f"{GROUP}/v1beta2/devicetaintrules"
PODS = "/api/v1/namespaces/default/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
SLICE = {
    "metadata": {"name": "gpus"},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "node-0",
        "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
        "devices": [
            {"name": "gpu-0", "taints": [{"key": "example.com/slow", "effect": "None"}]},
            {"name": "gpu-1"},
        ],
    },
}


def rule(effect="NoExecute", key="example.com/broken", **selector):
    taint = {"key": key, "effect": effect}
    return {"metadata": {"name": "r"}, "spec": {"deviceSelector": selector, "taint": taint}}


@pytest.fixture
def gated(make_cluster):
    """A cluster with one node and the feature gate on."""
    return make_cluster(nodes=1, release=release_of("", {"DRADeviceTaintRules": True}))


@pytest.fixture
def busy(gated):
    """A cluster in which a pod uses the first of two devices."""
    exactly = {"deviceClassName": "gpu"}
    claim = {
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
    }
    (node,) = gated.list("node", "")
    slice_ = {**SLICE, "spec": {**SLICE["spec"], "nodeName": node["metadata"]["name"]}}
    gated.ask("POST", f"{GROUP}/v1/deviceclasses", {"metadata": {"name": "gpu"}, "spec": {}})
    gated.ask("POST", f"{GROUP}/v1/resourceslices", slice_)
    gated.ask("POST", f"{GROUP}/v1/namespaces/default/resourceclaims", claim)
    gated.ask("POST", PODS, pod("p"))
    gated.pass_time(5)
    assert gated.find("pod", "p")["spec"]["nodeName"]
    return gated


def pod(name, claim="c"):
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}],
    }
    return {"metadata": {"name": name}, "spec": spec}


def condition(cluster):
    (found,) = cluster.ask("GET", f"{RULES}/r")["status"]["conditions"]
    return found["status"], found["reason"], found["message"]


def test_the_kind_is_served_only_with_its_gate(cluster, gated):
    assert cluster.ask("GET", RULES)["code"] == 404
    versions = cluster.ask("GET", GROUP)["versions"]
    assert [one["version"] for one in versions] == ["v1"]
    assert gated.ask("GET", RULES)["items"] == []
    group = gated.ask("GET", GROUP)
    assert [one["version"] for one in group["versions"]] == ["v1", "v1beta2"]
    assert group["preferredVersion"]["version"] == "v1"
    services = gated.ask("GET", "/apis/apiregistration.k8s.io/v1/apiservices")["items"]
    assert "v1beta2.resource.k8s.io" in {one["metadata"]["name"] for one in services}


def test_a_new_rule_gets_a_time_and_a_generation(gated):
    made = gated.ask("POST", RULES, {**rule(), "status": {"conditions": [{"type": "X"}]}})
    assert made["spec"]["taint"]["timeAdded"] == "2026-01-01T00:00:00Z"
    assert made["metadata"]["generation"] == 1
    table = gated.ask("GET", RULES, accept=TABLE)
    assert [one["name"] for one in table["columnDefinitions"]] == ["Name", "Age"]


@pytest.mark.parametrize(
    ("patch", "time_added"),
    [
        ({"effect": "NoSchedule"}, "2026-01-01T00:01:00Z"),
        ({"key": "example.com/slow"}, "2026-01-01T00:00:00Z"),
        ({"effect": "NoSchedule", "timeAdded": "2020-01-01T00:00:00Z"}, "2020-01-01T00:00:00Z"),
    ],
)
def test_a_changed_effect_gets_the_current_time(gated, patch, time_added):
    """An update may set another time explicitly."""
    gated.ask("POST", RULES, rule())
    gated.pass_time(60)
    body = {"spec": {"taint": patch}}
    changed = gated.ask("PATCH", f"{RULES}/r", body, content_type="application/merge-patch+json")
    assert changed["spec"]["taint"]["timeAdded"] == time_added
    assert changed["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("changed", "fields"),
    [
        (rule(driver="a b"), ["spec.deviceSelector.driver"]),
        (rule(pool=""), ["spec.deviceSelector.pool"]),
        (rule(device="A"), ["spec.deviceSelector.device"]),
        (rule("PreferNoSchedule"), ["spec.taint.effect"]),
        (rule("", key="a b"), ["spec.taint.key", "spec.taint.effect"]),
    ],
)
def test_an_invalid_rule_is_refused(gated, changed, fields):
    refusal = gated.ask("POST", RULES, changed)
    assert refusal["code"] == 422
    assert [cause["field"] for cause in refusal["details"]["causes"]] == fields


def test_taints_of_resource_slices_get_a_time(busy):
    taint = busy.find("resourceslice", "gpus", "")["spec"]["devices"][0]["taints"][0]
    assert taint["timeAdded"] == "2026-01-01T00:00:00Z"


def test_a_rule_evicts_pods_and_reports_them_in_its_condition(busy):
    """The pod that uses the tainted device is evicted, and the condition counts it."""
    busy.ask("POST", RULES, rule(device="gpu-0"))
    assert condition(busy)[1] == "PodsPendingEviction"
    evicted = busy.find("pod", "p")
    assert evicted["metadata"]["deletionTimestamp"]
    reasons = {one["type"]: one.get("reason") for one in evicted["status"]["conditions"]}
    assert reasons["DisruptionTarget"] == "DeletionByDeviceTaintManager"
    busy.pass_time(11)
    text = "1 pod evicted since starting the controller."
    assert condition(busy) == ("False", "Completed", text)


def test_a_rule_prevents_scheduling_on_its_devices_until_its_deletion(busy):
    busy.ask("POST", RULES, rule("NoSchedule", device="gpu-1"))
    claim = {
        "metadata": {"name": "d"},
        "spec": busy.find("resourceclaim", "c")["spec"],
    }
    busy.ask("POST", f"{GROUP}/v1/namespaces/default/resourceclaims", claim)
    busy.ask("POST", PODS, pod("q", "d"))
    busy.pass_time(30)
    assert not busy.find("pod", "q")["spec"].get("nodeName")
    busy.ask("DELETE", f"{RULES}/r")
    busy.pass_time(30)
    assert busy.find("pod", "q")["spec"]["nodeName"]


def test_the_effect_none_only_counts_pods(busy):
    busy.ask("POST", RULES, rule("None"))
    status, reason, message = condition(busy)
    assert (status, reason) == ("False", "NoEffect")
    assert message.startswith(
        "2 published devices selected. 1 allocated device selected. 1 pod would be evicted in 1"
        " namespace if the effect was NoExecute."
    )
    assert not busy.find("pod", "p")["metadata"].get("deletionTimestamp")
