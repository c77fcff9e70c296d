"""PodGroups of scheduling.k8s.io in a local cluster: validation and gang scheduling."""

from __future__ import annotations

import pytest

from fairlead.engine.configuration.release import release_of

V1ALPHA2 = "/apis/scheduling.k8s.io/v1alpha2"
GROUPS = f"{V1ALPHA2}/namespaces/default/podgroups"
WORKLOADS = f"{V1ALPHA2}/namespaces/default/workloads"
PODS = "/api/v1/namespaces/default/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
GANGS = {"GenericWorkload": True, "GangScheduling": True}
WHOLE = {**GANGS, "WorkloadAwarePreemption": True}
GANG = {"gang": {"minCount": 3}}


def group(name="train", policy=GANG, **spec):
    return {"metadata": {"name": name}, "spec": {"schedulingPolicy": policy, **spec}}


def pod(name, of="train"):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1500m"}}}
    spec = {"containers": [container], "schedulingGroup": {"podGroupName": of}}
    return {"metadata": {"name": name}, "spec": spec}


@pytest.fixture
def gated(make_cluster):
    """Makes clusters with feature gates; a node has four cores."""

    def make(nodes=1, gates=GANGS):
        return make_cluster(nodes=nodes, release=release_of("", gates))

    return make


def nodes_of(cluster):
    pods = cluster.list("pod", "default")
    return [one["spec"].get("nodeName") for one in pods]


def test_a_gang_starts_only_if_all_its_pods_fit(gated):
    """Two of the gang's three pods would fit on one node."""
    cluster = gated()
    cluster.ask("POST", GROUPS, group())
    for name in "abc":
        cluster.ask("POST", PODS, pod(name))
    cluster.pass_time(30)
    assert nodes_of(cluster) == [None, None, None]
    stored = cluster.ask("GET", f"{GROUPS}/train")
    (condition,) = stored["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodGroupScheduled", "False")
    assert condition["observedGeneration"] == 1
    bigger = gated(nodes=2)
    bigger.ask("POST", GROUPS, group())
    for name in "abc":
        bigger.ask("POST", PODS, pod(name))
    bigger.pass_time(30)
    assert None not in nodes_of(bigger)


def test_without_the_gate_the_kinds_are_not_served_and_the_field_is_dropped(gated):
    cluster = gated(gates={})
    assert cluster.ask("GET", V1ALPHA2)["code"] == 404
    assert cluster.ask("GET", GROUPS)["code"] == 404
    made = cluster.ask("POST", PODS, pod("a"))
    assert "schedulingGroup" not in made["spec"]
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"]}
    deployment = {
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    made = cluster.ask("POST", "/apis/apps/v1/namespaces/default/deployments", deployment)
    assert "schedulingGroup" not in made["spec"]["template"]["spec"]


def test_with_the_gate_the_kinds_are_discovered(gated):
    cluster = gated()
    resources = cluster.ask("GET", V1ALPHA2)["resources"]
    assert [one["name"] for one in resources] == ["podgroups", "podgroups/status", "workloads"]
    assert cluster.ask("POST", PODS, pod("a"))["spec"]["schedulingGroup"] == {
        "podGroupName": "train"
    }


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        (group(policy={}), 'spec.schedulingPolicy: Invalid value: "": must specify one of: '),
        (
            group(policy={"basic": {}, **GANG}),
            'spec.schedulingPolicy: Invalid value: "{`basic`, `gang`}": must specify exactly one',
        ),
        (group(policy={"gang": {"minCount": 0}}), "gang.minCount: Required value"),
        (
            group(policy={"gang": {"minCount": -1}}),
            "gang.minCount: Invalid value: -1: must be greater than or equal to 1",
        ),
        (group(name=".train"), "metadata.name: Invalid value"),
        (group(disruptionMode="Node"), 'disruptionMode: Unsupported value: "Node"'),
        (group(podGroupTemplateRef={}), "spec.podGroupTemplateRef: Invalid value"),
        (group(priorityClassName="none"), "no PriorityClass with name none was found"),
        (group(priority=7), "the integer value of priority (7) must not be provided"),
    ],
)
def test_an_invalid_pod_group_is_refused(gated, sent, problem):
    refused = gated(gates=WHOLE).ask("POST", GROUPS, sent)
    assert problem in refused["message"]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({}, "spec.podGroupTemplates: Required value"),
        (
            {"podGroupTemplates": [{"name": "a", "schedulingPolicy": GANG}] * 2},
            "spec.podGroupTemplates[1]: Duplicate value",
        ),
        (
            {"podGroupTemplates": [{"name": "", "schedulingPolicy": GANG}]},
            "spec.podGroupTemplates[0].name: Required value",
        ),
        (
            {
                "controllerRef": {"kind": "", "name": "x"},
                "podGroupTemplates": [{"name": "a", "schedulingPolicy": GANG}],
            },
            "spec.controllerRef.kind: Required value",
        ),
        (
            {
                "podGroupTemplates": [
                    {"name": f"t{number}", "schedulingPolicy": GANG} for number in range(9)
                ]
            },
            "spec.podGroupTemplates: Too many: 9: must have at most 8 items",
        ),
    ],
)
def test_an_invalid_workload_is_refused(gated, spec, problem):
    refused = gated().ask("POST", WORKLOADS, {"metadata": {"name": "w"}, "spec": spec})
    assert problem in refused["message"]


def test_names_of_pod_groups_and_workloads_can_contain_dots(gated):
    """Names of PodGroups and Workloads are DNS subdomains."""
    cluster = gated()
    spec = {"podGroupTemplates": [{"name": "a", "schedulingPolicy": GANG}]}
    cluster.ask("POST", WORKLOADS, {"metadata": {"name": "w.x"}, "spec": spec})
    reference = {"workload": {"workloadName": "w.x", "podGroupTemplateName": "a"}}
    made = cluster.ask("POST", GROUPS, group("train.1", podGroupTemplateRef=reference))
    assert made["kind"] == "PodGroup"


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        ({}, 'spec.schedulingGroup: Invalid value: "": must specify one of: `podGroupName`'),
        ({"podGroupName": ""}, 'spec.schedulingGroup.podGroupName: Invalid value: "": a lower'),
        ({"podGroupName": "../x"}, "spec.schedulingGroup.podGroupName: Invalid value: "),
    ],
)
def test_an_invalid_scheduling_group_of_a_pod_is_refused(gated, named, problem):
    sent = pod("a")
    sent["spec"]["schedulingGroup"] = named
    assert problem in gated().ask("POST", PODS, sent)["message"]


def test_fields_of_other_feature_gates_are_dropped(gated):
    """Topology constraints and claims of PodGroups are dropped while their gates are off."""
    cluster = gated()
    constraints = {"topology": [{"key": "rack"}]}
    claims = [{"name": "gpu", "resourceClaimName": "gpu"}]
    sent = group(schedulingConstraints=constraints, resourceClaims=claims)
    assert cluster.ask("POST", GROUPS, sent)["spec"] == {"schedulingPolicy": GANG}
    stored = cluster.ask("GET", f"{GROUPS}/train")
    stored["status"] = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "x"}]}
    kept = cluster.ask("PUT", f"{GROUPS}/train/status", stored)
    assert not kept.get("status")


def test_a_pod_group_is_kept_until_its_pods_have_finished(gated):
    cluster = gated()
    cluster.ask("POST", GROUPS, group(policy={"basic": {}}))
    stored = cluster.ask("GET", f"{GROUPS}/train")
    assert stored["metadata"]["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]
    cluster.ask("POST", PODS, pod("a"))
    cluster.pass_time(10)
    assert cluster.ask("DELETE", f"{GROUPS}/train")["metadata"]["deletionTimestamp"]
    cluster.pass_time(60)
    assert cluster.ask("GET", f"{GROUPS}/train")["kind"] == "PodGroup"
    cluster.ask("DELETE", f"{PODS}/a")
    cluster.pass_time(60)
    assert cluster.ask("GET", f"{GROUPS}/train")["code"] == 404


def test_without_the_gate_the_protection_controller_has_no_role(gated):
    role = (
        "/apis/rbac.authorization.k8s.io/v1/clusterroles"
        "/system:controller:podgroup-protection-controller"
    )
    assert gated(gates={}).ask("GET", role)["code"] == 404
    assert gated().ask("GET", role)["rules"] == [
        {
            "verbs": ["get", "list", "update", "watch"],
            "apiGroups": ["scheduling.k8s.io"],
            "resources": ["podgroups"],
        },
        {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["pods"]},
    ]


def test_a_workload_is_stored(gated):
    spec = {"podGroupTemplates": [{"name": "workers", "schedulingPolicy": GANG}]}
    made = gated().ask("POST", WORKLOADS, {"metadata": {"name": "w"}, "spec": spec})
    assert made["spec"] == spec
    assert made["metadata"]["generation"] == 1


def test_a_pod_group_may_only_name_a_template_that_exists(gated):
    cluster = gated()

    def of(workload, template):
        names = {"workloadName": workload, "podGroupTemplateName": template}
        return cluster.ask("POST", GROUPS, group(podGroupTemplateRef={"workload": names}))

    spec = {"podGroupTemplates": [{"name": "workers", "schedulingPolicy": GANG}]}
    cluster.ask("POST", WORKLOADS, {"metadata": {"name": "w"}, "spec": spec})
    refused = 'podgroups.scheduling.k8s.io "train" is forbidden: PodGroup rejected: '
    assert of("x", "workers")["message"] == f'{refused}Workload "x" not found'
    problem = 'PodGroupTemplate "leader" not found in Workload "w"'
    assert of("w", "leader")["message"] == f"{refused}{problem}"
    assert of("w", "workers")["kind"] == "PodGroup"


def test_the_specs_of_pod_groups_and_workloads_are_immutable(gated):
    cluster = gated()
    made = cluster.ask("POST", GROUPS, group())
    made["spec"]["schedulingPolicy"] = {"gang": {"minCount": 2}}
    refused = cluster.ask("PUT", f"{GROUPS}/train", made)
    assert "spec.schedulingPolicy: Invalid value" in refused["message"]
    assert "field is immutable" in refused["message"]


def test_fields_of_preemption_need_their_gate(gated):
    """Without the gate, the fields are dropped; with it, the class determines the priority."""
    high = {"metadata": {"name": "high"}, "value": 1000}
    sent = group(priorityClassName="high", disruptionMode="PodGroup")
    without = gated()
    without.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", high)
    assert without.ask("POST", GROUPS, sent)["spec"] == {"schedulingPolicy": GANG}
    cluster = gated(gates=WHOLE)
    cluster.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", high)
    assert cluster.ask("POST", GROUPS, sent)["spec"] == {
        "schedulingPolicy": GANG,
        "disruptionMode": "PodGroup",
        "priorityClassName": "high",
        "priority": 1000,
    }
    plain = cluster.ask("POST", GROUPS, group("plain"))["spec"]
    assert (plain["disruptionMode"], plain["priority"]) == ("Pod", 0)


def test_the_table_of_pod_groups_has_name_and_age(gated):
    cluster = gated()
    cluster.ask("POST", GROUPS, group())
    shown = cluster.ask("GET", GROUPS, accept=TABLE)
    assert [one["name"] for one in shown["columnDefinitions"]] == ["Name", "Age"]
