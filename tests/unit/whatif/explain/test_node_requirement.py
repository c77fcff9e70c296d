"""The labels that no node has, and the taints of the nodes that a pending pod would fit."""

from __future__ import annotations

import pytest

from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.configuration.release import NO_CHOICE
from fairlead.whatif.explain.pod import explain_pod, explanation_json
from fairlead.whatif.explain.target import explain_object

UNREACHABLE = "node.kubernetes.io/unreachable"
SELECTED = {"nodeSelector": {"pool": "mem"}}


@pytest.fixture
def unmet(snapshot, make):
    """Returns the sentences about a pod with `spec` in a cluster of `nodes`."""

    def explain(nodes, **spec):
        found = snapshot(*nodes, make.pod("p", **spec))
        return explanation_json(explain_pod(found, "pod/p"))["unmet"]

    return explain


def affinity(*terms):
    selector = {"nodeSelectorTerms": [{"matchExpressions": list(term)} for term in terms]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": selector}
    return {"affinity": {"nodeAffinity": required}}


def requires(key, operator, *values):
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def tainted(node, *texts, **spec):
    taints = []
    for one in texts:
        label, _, effect = one.partition(":")
        key, _, value = label.partition("=")
        taints.append({"key": key, "value": value, "effect": effect or "NoSchedule"})
    return node | {"spec": {"taints": taints, **spec}}


@pytest.mark.parametrize(
    ("spec", "sentences"),
    [
        (
            {"nodeSelector": {"pool": "gpu"}},
            ["No node has pool=gpu; the values of pool are general (2 nodes) and mem (1 node)."],
        ),
        (
            {"nodeSelector": {"pool": "gpu", "disk": "ssd"}},
            [
                "No node has pool=gpu; the values of pool are general (2 nodes) and mem (1 node).",
                "No node has disk=ssd; the only value of disk is hdd (1 node).",
            ],
        ),
        (
            {"nodeSelector": {"tier": "gold"}},
            ["No node has tier=gold; no node has the label tier."],
        ),
        (
            {"nodeSelector": {"pool": "mem", "zone": "a"}},
            ["No node has all of these: pool=mem (1 node) and zone=a (2 nodes)."],
        ),
        (
            affinity([requires("tier", "Exists")], [requires("zone", "In", "c", "d")]),
            [
                "No node has the label tier.",
                "No node has zone=c or zone=d; the values of zone are a (2 nodes) and b (1 node).",
            ],
        ),
        (
            affinity([requires("zone", "NotIn", "a", "b")]),
            ["Every node has one of the excluded values of zone: a (2 nodes) and b (1 node)."],
        ),
        (affinity([requires("pool", "DoesNotExist")]), ["Every node has the label pool."]),
        (affinity([]) | {"nodeSelector": {"pool": "mem"}}, []),
        (
            affinity([requires("pool", "Exists"), requires("tier", "Exists")]),
            ["No node has the label tier."],
        ),
        (affinity([requires("tier", "Exists")], [requires("zone", "In", "a")]), []),
        ({"nodeSelector": {"pool": "mem"}, "cpu": "9"}, []),
        ({"nodeSelector": {"pool": "gpu"}, "node_name": "a"}, []),
    ],
    ids=[
        "a value that no node has, with the values that exist",
        "two labels that no node has",
        "a key that no node has",
        "labels that no node has together",
        "terms of which each has a label that no node has",
        "values that all nodes have and must not have",
        "a label that all nodes have and must not have",
        "an empty term, which matches no node",
        "a label that no node has beside one that all nodes have",
        "a term that matches",
        "labels that match a node that is too small",
        "a pod that has a node",
    ],
)
def test_labels_that_no_node_has_are_named(unmet, make, spec, sentences):
    nodes = [
        make.node("a", pool="general", zone="a"),
        make.node("b", pool="general", zone="a", disk="hdd"),
        make.node("c", pool="mem", zone="b"),
    ]
    assert unmet(nodes, **spec) == sentences


def test_only_the_most_frequent_of_many_values_are_named(unmet, make):
    nodes = [make.node(f"n{number}", rack=f"r{number}") for number in range(8)]
    nodes.append(make.node("more", rack="r7"))
    [sentence] = unmet(nodes, nodeSelector={"rack": "r9"})
    assert sentence.endswith("the values of rack are r7 (2 nodes), r0 (1 node), r1 (1 node), "
                             "r2 (1 node), r3 (1 node) and 3 more.")  # fmt: skip


def test_nothing_is_said_about_a_pod_that_names_its_node(unmet, make):
    """Like the pod of a DaemonSet whose node does not exist any more."""
    spec = affinity([])
    [term] = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    term["matchFields"] = [requires("metadata.name", "In", "gone")]
    assert unmet([make.node("a")], **spec) == []


DISK = [("a", {"disktype": "ssd"}), ("b", {"disktype": "hdd"}), ("c", {"disktype": "ssd"})]
ZONE = "topology.kubernetes.io/zone"


def selects(**labels):
    return {"nodeSelector": labels}


TYPING_ERRORS = {
    "a value": (
        DISK,
        selects(disktype="sssd"),
        (
            "disktype=sssd may be a typing error, because 2 nodes have disktype=ssd: correct "
            "spec.nodeSelector of pod/default/p and create it again."
        ),
    ),
    "a zone": (
        [("a", {ZONE: "eu-1a"}), ("b", {ZONE: "eu-1b"})],
        {"nodeSelector": {ZONE: "eu-1aa"}},
        (
            f"{ZONE}=eu-1aa may be a typing error, because 1 node has {ZONE}=eu-1a: correct "
            "spec.nodeSelector of pod/default/p and create it again."
        ),
    ),
    "a key": (
        DISK,
        {"nodeSelector": {"disk-type": "hdd"}},
        (
            "disk-type=hdd may be a typing error, because 1 node has disktype=hdd: correct "
            "spec.nodeSelector of pod/default/p and create it again."
        ),
    ),
    "one of several values": (
        DISK,
        affinity([requires("disktype", "In", "sssd", "nvme")]),
        (
            "disktype=sssd or disktype=nvme may be a typing error, because 2 nodes have "
            "disktype=ssd or disktype=nvme: correct spec.affinity.nodeAffinity of pod/default/p "
            "and create it again."
        ),
    ),
    "a key that must exist": (
        DISK,
        affinity([requires("diskttype", "Exists")]),
        (
            "the label diskttype may be a typing error, because 3 nodes have the label disktype: "
            "correct spec.affinity.nodeAffinity of pod/default/p and create it again."
        ),
    ),
    "a key of a number": (
        [("a", {"cores": "16"}), ("b", {"cores": "4"})],
        affinity([requires("core", "Gt", "8")]),
        (
            "core Gt 8 may be a typing error, because 1 node has cores Gt 8: correct "
            "spec.affinity.nodeAffinity of pod/default/p and create it again."
        ),
    ),
}
NO_TYPING_ERRORS = {
    "two similar values": (
        [("a", {"disktype": "ssds"}), ("b", {"disktype": "ssdx"})],
        selects(disktype="ssd"),
    ),
    "another zone": ([("a", {ZONE: "eu-1a"})], {"nodeSelector": {ZONE: "eu-1b"}}),
    "a value that some node has": (
        [("d", {"disktype": "sssd"}), *DISK],
        selects(disktype="sssd", pool="x"),
    ),
    "a similar key without the value": (DISK, {"nodeSelector": {"disk-type": "nvme"}}),
    "an error beside a value that no node has": (DISK, selects(disktype="sssd", pool="gpu")),
    "labels that no node has together with the likely value": (
        [("a", {"disktype": "ssd"}), ("b", {"pool": "mem"})],
        selects(disktype="sssd", pool="mem"),
    ),
}


@pytest.mark.parametrize(("nodes", "spec", "sentence"), TYPING_ERRORS.values(), ids=TYPING_ERRORS)
def test_a_typing_error_in_the_selector_is_to_be_corrected(unmet, make, nodes, spec, sentence):
    nodes = [make.node(name, **labels) for name, labels in nodes]
    assert unmet(nodes, **spec)[-1] == sentence


@pytest.mark.parametrize(("nodes", "spec"), NO_TYPING_ERRORS.values(), ids=NO_TYPING_ERRORS)
def test_a_selector_without_one_likely_correction_is_no_typing_error(unmet, make, nodes, spec):
    nodes = [make.node(name, **labels) for name, labels in nodes]
    assert "typing error" not in " ".join(unmet(nodes, **spec))


def test_the_correction_replaces_the_change_of_a_node_label(snapshot, make):
    nodes = [make.node(name, **labels) for name, labels in DISK]
    full = make.pod("full", cpu="4", node_name="a")
    pod = make.pod("p", cpu="3", **selects(disktype="sssd"))
    found = explanation_json(explain_pod(snapshot(*nodes, full, pod), "pod/p"))["remedies"]
    corrected = "correct disktype=sssd to disktype=ssd in the pod's nodeSelector"
    assert found == {"c": [corrected], "a": [corrected, "delete pod default/full"]}


def test_the_selector_of_a_runtime_class_is_not_corrected(snapshot, make):
    runtime = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "gvisor"},
        "handler": "gvisor",
        "scheduling": {"nodeSelector": {"disktype": "sssd"}},
    }
    nodes = [make.node(name, **labels) for name, labels in DISK]
    pod = make.pod("p", runtimeClassName="gvisor", **selects(disktype="sssd"))
    explanation = explanation_json(explain_pod(snapshot(*nodes, runtime, pod), "pod/p"))
    assert "typing error" not in " ".join(explanation["unmet"])
    assert explanation["remedies"]["b"] == ["label node b disktype=sssd"]


OWNERS = {
    "a Deployment": (
        ("apps/v1", "ReplicaSet", "web-1"),
        "spec.template.spec.nodeSelector of deploy/default/web",
    ),
    "a Job, whose template is immutable": (
        ("batch/v1", "Job", "web"),
        "spec.template.spec.nodeSelector of job/default/web and create it again",
    ),
    "a CronJob": (
        ("batch/v1", "Job", "web-29384720"),
        "spec.jobTemplate.spec.template.spec.nodeSelector of cronjob/default/web",
    ),
    "a custom resource": (
        ("example.com/v1", "Farm", "web"),
        "nodeSelector of the pods of farm/default/web",
    ),
}


@pytest.mark.parametrize(("owner", "field"), OWNERS.values(), ids=OWNERS)
def test_the_field_to_correct_is_named(snapshot, make, owner, field):
    nodes = [make.node(name, **labels) for name, labels in DISK]
    pod = make.pod("web-0", **selects(disktype="sssd"))
    version, kind, name = owner
    controller = {"apiVersion": version, "kind": kind, "name": name, "uid": "u", "controller": True}
    pod["metadata"] |= {
        "labels": {"pod-template-hash": "1"} if kind == "ReplicaSet" else {},
        "ownerReferences": [controller],
    }
    unmet = explanation_json(explain_pod(snapshot(*nodes, pod), "pod/web-0"))["unmet"]
    assert unmet[-1].endswith(f": correct {field}.")


def test_a_workload_names_the_typing_error_of_its_pending_pods(snapshot, make):
    web = make.workload("ReplicaSet", "web", **selects(disktype="sssd"))
    web["metadata"]["uid"] = "web"
    pod = make.pod("web-0", owner="web", **selects(disktype="sssd"))
    found = snapshot(make.node("a", disktype="ssd"), web, pod)
    findings = explain_object(found, "rs/web", SchedulerConfig(), NO_CHOICE).findings
    assert any("may be a typing error" in one for one in findings)


GPU, TWO = "dedicated=gpu", ("dedicated=mem", "old:NoExecute")
ALL_GPU = (
    "The 2 nodes that would fit otherwise have the taint dedicated=gpu:NoSchedule, which the pod "
    "does not tolerate."
)
ONE_NODE = (
    "The only node that would fit otherwise, m, has the taints dedicated=mem:NoSchedule and "
    "old:NoExecute, which the pod does not tolerate."
)
DIFFERENT = (
    "The 3 nodes that would fit otherwise have taints that the pod does not tolerate: "
    "dedicated=gpu:NoSchedule (2 nodes); dedicated=mem:NoSchedule, old:NoExecute (1 node)."
)


@pytest.mark.parametrize(
    ("taints", "sentences"),
    [
        ({"m": [GPU], "n": [GPU]}, [ALL_GPU]),
        ({"m": [*TWO]}, [ONE_NODE]),
        ({"m": [GPU], "n": [GPU], "o": [*TWO]}, [DIFFERENT]),
        ({"m": [f"{UNREACHABLE}:NoExecute"]}, []),
        ({"m": ["soft:PreferNoSchedule"], "n": []}, []),
    ],
    ids=[
        "a taint of all nodes that would fit",
        "several taints of one node",
        "different taints",
        "a node that is out of service",
        "a node that the pod fits",
    ],
)
def test_taints_of_the_nodes_that_would_fit_are_named(unmet, make, taints, sentences):
    nodes = [tainted(make.node(name, pool="mem"), *found) for name, found in taints.items()]
    full = make.node("full", cpu="500m", pool="mem")
    assert unmet([make.node("a"), full, *nodes], **SELECTED) == sentences


def test_a_cordoned_node_is_not_a_node_that_would_fit(unmet, make):
    nodes = [tainted(make.node("m", pool="mem"), GPU, unschedulable=True)]
    assert unmet(nodes, **SELECTED) == []


def test_a_workload_names_the_label_that_its_pending_pods_require(snapshot, make):
    web = make.workload("ReplicaSet", "web", nodeSelector={"pool": "gpu"})
    web["metadata"]["uid"] = "web"
    pod = make.pod("web-0", owner="web", nodeSelector={"pool": "gpu"})
    found = snapshot(make.node("a", pool="general"), web, pod)
    answer = explain_object(found, "rs/web", SchedulerConfig(), NO_CHOICE)
    assert "No node has pool=gpu; the only value of pool is general (1 node)." in answer.findings
