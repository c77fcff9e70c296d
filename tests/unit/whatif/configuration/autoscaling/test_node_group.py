"""Node groups: from labels, from the autoscaler in the dump, and from a file."""

from __future__ import annotations

import json

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.whatif.configuration.autoscaling.autoscaler import (
    AutoscaleOptions,
    Autoscaling,
    read_autoscalers,
    read_autoscaling,
)
from fairlead.whatif.configuration.autoscaling.node_price import price_in_group
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.manifest_reader import manifests

ON = AutoscaleOptions("cluster-autoscaler")
ZONE = "topology.kubernetes.io/zone"


@pytest.fixture
def of_labels(found, make):
    """Returns the groups of nodes with these labels, each as (id, min, max)."""

    def read(*labels, more=()):
        nodes = [make.node(f"n{i}", **one) for i, one in enumerate(labels)]
        return read_autoscaling(ON, found(*nodes, *more))

    return read


def limits(autoscaling):
    return [(one.id, one.minimum, one.maximum) for one in autoscaling.config.groups]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        pytest.param({"eks.amazonaws.com/nodegroup": "w"}, ["w"], id="EKS"),
        pytest.param({"alpha.eksctl.io/nodegroup-name": "ng"}, ["ng"], id="eksctl"),
        pytest.param({"cloud.google.com/gke-nodepool": "p", ZONE: "z"}, ["p-z"], id="GKE"),
        pytest.param({"kubernetes.azure.com/agentpool": "np"}, ["np"], id="AKS"),
        pytest.param({"kops.k8s.io/instancegroup": "ig"}, ["ig"], id="kops"),
        pytest.param({"cluster.x-k8s.io/deployment-name": "md"}, ["md"], id="Cluster API"),
    ],
)
def test_node_labels_identify_the_groups(of_labels, labels, names):
    assert [name for name, _, _ in limits(of_labels(labels, labels))] == names


def test_a_group_of_eks_that_eksctl_created_is_not_a_second_group(of_labels):
    eksctl = {"alpha.eksctl.io/nodegroup-name": "own"}
    managed = {"eks.amazonaws.com/nodegroup": "m", "alpha.eksctl.io/nodegroup-name": "m"}
    found = of_labels(managed, managed, eksctl)
    assert limits(found) == [("m", 1, 100), ("own", 1, 100)]
    assert found.notes[0] == "Node groups by the labels of EKS, eksctl."
    assert found.config.options.cloud_provider == "aws"


def test_a_gke_pool_is_one_group_per_zone(of_labels):
    pool = "cloud.google.com/gke-nodepool"
    found = of_labels({pool: "p", ZONE: "a"}, {pool: "p", ZONE: "b"}, {pool: "p", ZONE: "b"})
    assert limits(found) == [("p-a", 1, 100), ("p-b", 1, 100)]


def test_a_group_of_several_zones_has_a_template_for_each_zone(of_labels):
    """New nodes are like the first node, with all zone labels of a node in their zone."""
    ebs, aws = "topology.ebs.csi.aws.com/zone", "topology.k8s.aws/zone-id"
    pool = {"eks.amazonaws.com/nodegroup": "w"}
    found = of_labels(
        *(
            {**pool, "disk": disk, ZONE: zone, ebs: zone, aws: f"id-{zone}"}
            for disk, zone in (("ssd", "a"), ("ssd", "a"), ("hdd", "b"), ("ssd", "c"))
        )
    )
    [group] = found.config.groups
    assert [one["metadata"]["labels"] for one in group.templates] == [
        {**pool, "disk": "ssd", ZONE: zone, ebs: zone, aws: f"id-{zone}"} for zone in "abc"
    ]
    assert all(one["status"] == group.template["status"] for one in group.other_zones)


def test_a_new_node_is_the_same_for_each_order_of_the_nodes_in_the_dump(found, make):
    pool = {"eks.amazonaws.com/nodegroup": "w"}
    nodes = [make.node("b", cpu="4", **pool), make.node("a", cpu="8", **pool)]
    for order in (nodes, nodes[::-1]):
        [group] = read_autoscaling(ON, found(*order)).config.groups
        assert group.template["status"]["allocatable"]["cpu"] == "8"


def test_a_new_node_is_like_the_first_node_in_service(found, make):
    """A cordoned or unready node may have taints and lack resources that others have."""
    pool = {"eks.amazonaws.com/nodegroup": "w"}
    cordoned, unready = (make.node(name, cpu="1", **pool) for name in "ab")
    taint = {"key": "maintenance", "effect": "NoSchedule"}
    cordoned["spec"] = {"unschedulable": True, "taints": [taint]}
    unready["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    others = [make.node("c", cpu="8", **pool), make.node("d", cpu="9", **pool)]
    [group] = read_autoscaling(ON, found(cordoned, unready, *others)).config.groups
    assert (group.template["status"]["allocatable"]["cpu"], group.template["spec"]) == ("8", {})
    [group] = read_autoscaling(ON, found(cordoned, unready)).config.groups
    assert group.template["spec"] == {"taints": [taint]}


@pytest.mark.parametrize(
    ("size", "template", "notes"),
    [
        (("8", "16Gi"), None, 1),
        (("4", "15900Mi"), None, 0),
        (("4", "32Gi"), None, 1),
        (("8", "16Gi"), "16", 0),
    ],
)
def test_a_note_says_which_size_new_nodes_have_if_the_sizes_differ(
    found, make, write, size, template, notes
):
    """Nodes of equal machines differ slightly in memory. A template in the file states a size."""
    nodes = [make.node("a", pool="w"), make.node("b", pool="w")]
    nodes[1]["status"]["allocatable"] |= dict(zip(("cpu", "memory"), size, strict=True))
    amounts = {"cpu": template, "memory": "64Gi", "pods": "110"}
    stated = {"template": {"capacity": amounts, "allocatable": amounts}} if template else {}
    group = {"name": "w", "min": 1, "max": 9, "labels": {"pool": "w"}, **stated}
    path = str(write("groups.json", json.dumps({"node-groups": [group]})))
    read = read_autoscaling(AutoscaleOptions("cluster-autoscaler", path), found(*nodes))
    said = [one for one in read.notes if "a (4 cpu, 16Gi memory) in w" in one]
    assert len(said) == notes


def test_a_note_states_assumed_limits(of_labels):
    found = of_labels({"kops.k8s.io/instancegroup": "ig"})
    assert found.notes == (
        "Node groups by the labels of kops.",
        (
            "Assumed limits of 1 to 100 nodes for ig. To state others, add the ConfigMap "
            "cluster-autoscaler-status to the dump, or use --node-groups FILE."
        ),
    )


def test_a_large_group_without_known_limits_can_double(of_labels):
    ig = "kops.k8s.io/instancegroup"
    found = of_labels(*({ig: "large"} for _ in range(120)), {ig: "small"})
    assert limits(found) == [("large", 1, 240), ("small", 1, 100)]
    assert found.notes[1] == (
        "Assumed limits of 1 to 100 nodes for small, 1 to 240 nodes for large. To state others, "
        "add the ConfigMap cluster-autoscaler-status to the dump, or use --node-groups FILE."
    )


def test_the_autoscaler_in_the_dump_sets_limits_and_flags(of_labels, make):
    deployment = make.workload(name="ca", namespace="kube-system")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container["image"] = "registry/cluster-autoscaler:v1.36.0"
    container["command"] = [
        "./cluster-autoscaler", "--nodes=2:9:ig", "--expander=most-pods",
        "--cloud-provider=aws", "--scale-down-unneeded-time=3m",
    ]  # fmt: skip
    found = of_labels({"kops.k8s.io/instancegroup": "ig"}, more=[deployment])
    assert limits(found) == [("ig", 2, 9)]
    assert found.config.options.expander == ("most-pods",)
    assert found.config.options.defaults.scale_down_unneeded_time == seconds(180)
    assert found.notes == (
        "Node groups by the labels of kops.",
        "Limits of node groups from the flags --nodes of the Cluster Autoscaler.",
    )


@pytest.mark.parametrize(
    ("flag", "notes"),
    [
        ("--expander=grpc", ["is ignored: expander: grpc calls an external server"]),
        ("--scale-down-unneeded-time=soon", ["is ignored: --scale-down-unneeded-time: 'soon'"]),
        ("--leader-elect=false", []),
        ("--enable-proactive-scaleup", ["is ignored: --enable-proactive-scaleup is not simulated"]),
        ("--enable-proactive-scaleup=False", []),
        ("--scale-up-from-zero=false", ["is ignored: --scale-up-from-zero is not simulated"]),
        ("--scale-up-from-zero=true", []),
        ("--node-deletion-candidate-ttl=0s", []),
    ],
)
def test_flags_that_change_decisions_and_are_not_simulated_are_named(of_labels, make, flag, notes):
    deployment = make.workload(name="ca", namespace="kube-system")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container |= {"image": "cluster-autoscaler:v1.36.0", "args": ["--nodes=1:9:ig", flag]}
    found = of_labels({"kops.k8s.io/instancegroup": "ig"}, more=[deployment]).notes[2:]
    assert len(found) == len(notes)
    for note, part in zip(found, notes, strict=True):
        assert part in note


def test_flags_may_be_repeated_and_their_values_may_be_the_next_words(of_labels, make):
    deployment = make.workload(name="ca", namespace="kube-system")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container["image"] = "registry/cluster-autoscaler:v1.36.0"
    container["command"] = ["./cluster-autoscaler", "--nodes", "2:9:ig", "--nodes=0:4:other"]
    container["args"] = [
        "--startup-taint=a", "--startup-taint", "b", "--gpu-total=k80:0:2", "--gpu-total=t4:0:3",
        "--balance-similar-node-groups", "--v", "4", "--expander=price", "--expander", "most-pods",
        "--leader-elect", "--scale-down-unneeded-time", "3m", "--cloud-provider",
    ]  # fmt: skip
    found = of_labels({"kops.k8s.io/instancegroup": "ig"}, more=[deployment])
    options = found.config.options
    assert limits(found) == [("ig", 2, 9)]
    assert options.startup_taint == ("a", "b")
    assert {kind: limit.maximum for kind, limit in options.gpu_total.items()} == {"k80": 2, "t4": 3}
    assert options.balance_similar_node_groups
    assert options.expander == ("most-pods",)
    assert options.defaults.scale_down_unneeded_time == seconds(180)


@pytest.mark.parametrize(
    ("label", "flags", "provider"),
    [
        ("eks.amazonaws.com/nodegroup", [], "aws"),
        ("alpha.eksctl.io/nodegroup-name", [], "aws"),
        ("kubernetes.azure.com/agentpool", [], "azure"),
        ("kops.k8s.io/instancegroup", [], ""),
        ("kops.k8s.io/instancegroup", ["--cloud-provider=aws"], "aws"),
        ("eks.amazonaws.com/nodegroup", ["--cloud-provider", "clusterapi"], "clusterapi"),
    ],
)
def test_flags_or_labels_show_the_cloud_provider(of_labels, make, label, flags, provider):
    deployment = make.workload(name="ca", namespace="kube-system")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container |= {"image": "registry/cluster-autoscaler:v1.36.0", "args": flags}
    found = of_labels({label: "x"}, more=[deployment])
    assert found.config.options.cloud_provider == provider


@pytest.mark.parametrize("namespace", ["kube-system", "elsewhere", None])
def test_the_priority_expander_gets_its_config_map_of_the_dump(of_labels, make, namespace):
    deployment = make.workload(name="ca", namespace="kube-system")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container["image"] = "registry/cluster-autoscaler:v1.36.0"
    container["args"] = ["--nodes=2:9:eks-ig-12", "--expander=priority,least-waste"]
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-autoscaler-priority-expander", "namespace": namespace},
        "data": {"priorities": "10: ['.*']"},
    }
    more = [deployment, *([config_map] if namespace else ())]
    found = of_labels({"eks.amazonaws.com/nodegroup": "ig"}, more=more)
    (group,) = found.config.groups
    assert (group.id, group.provider_name) == ("ig", "eks-ig-12")
    is_known = namespace == "kube-system"
    assert found.config.priorities == ("10: ['.*']" if is_known else None)


STATUS = """
time: 2026-11-20 05:00:00 +0000 UTC
autoscalerStatus: Running
nodeGroups:
- name: {name}
  health: {{status: Healthy, minSize: 3, maxSize: 12}}
"""
OLD_STATUS = """
Cluster-autoscaler status at 2021-05-01:
NodeGroups:
  Name:        other
  Health:      Healthy (ready=1 cloudProviderTarget=1 (minSize=0, maxSize=1))
  Name:        {name}
  Health:      Healthy (ready=3 cloudProviderTarget=3 (minSize=3, maxSize=12))
"""


@pytest.mark.parametrize("form", [STATUS, OLD_STATUS], ids=["YAML", "text before 1.30"])
@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ({"eks.amazonaws.com/nodegroup": "web"}, "eks-web-5ec4b5a2-3d0f"),
        (
            {"alpha.eksctl.io/nodegroup-name": "web"},
            "eksctl-prod-nodegroup-web-NodeGroup-1LRT8H4ZKAVO9",
        ),
        ({"kubernetes.azure.com/agentpool": "web"}, "aks-web-12345678-vmss"),
        ({"kops.k8s.io/instancegroup": "web"}, "web.prod.example.com"),
        (
            {"cloud.google.com/gke-nodepool": "web", "topology.kubernetes.io/zone": "eu-1a"},
            "https://compute.example/zones/eu-1a/instanceGroups/gke-prod-web-7d21-grp",
        ),
        ({"cluster.x-k8s.io/deployment-name": "web"}, "MachineDeployment/default/web"),
    ],
)
def test_the_status_of_the_autoscaler_in_the_dump_sets_limits(of_labels, form, labels, name):
    status = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
        "data": {"status": form.format(name=name)},
    }
    found = of_labels(labels, more=[status])
    assert [one[1:] for one in limits(found)] == [(3, 12)]
    assert found.notes[1] == "Limits of node groups from the ConfigMap cluster-autoscaler-status."


@pytest.mark.parametrize("text", ["", ":::{", "[1]", "nodeGroups: {a: b}", None])
def test_a_note_says_that_the_status_states_no_limits(of_labels, text):
    """It does not ask for the ConfigMap that the dump already has."""
    status = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
        "data": {} if text is None else {"status": text},
    }
    found = of_labels({"kops.k8s.io/instancegroup": "ig"}, more=[status])
    assert found.notes[1] == (
        "Assumed limits of 1 to 100 nodes for ig, because the ConfigMap cluster-autoscaler-status "
        "states none that can be read. To state others, use --node-groups FILE."
    )


@pytest.mark.parametrize(
    ("label", "form"),
    [
        ("eks.amazonaws.com/nodegroup", "eks-{}-5ec4b5a2-3d0f"),
        ("alpha.eksctl.io/nodegroup-name", "eksctl-prod-nodegroup-{}-NodeGroup-1LRT8H4ZK"),
        ("cloud.google.com/gke-nodepool", "https://x/instanceGroups/gke-prod-{}-7d21ab12-grp"),
        ("kops.k8s.io/instancegroup", "{}.prod.example.com"),
    ],
)
def test_the_limits_of_a_group_with_a_longer_name_do_not_count(of_labels, label, form):
    """The group web-gpu of the status has other limits, and stands first."""
    head, entry = STATUS.split("nodeGroups:\n")
    longer = [
        entry.format(name=form.format(one)).replace("12", "99") for one in ("web-gpu", "a-web")
    ]
    text = f"{head}nodeGroups:\n{''.join(longer)}{entry.format(name=form.format('web'))}"
    status = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
        "data": {"status": text},
    }
    assert limits(of_labels({label: "web"}, more=[status])) == [("web", 3, 12)]


@pytest.mark.parametrize(
    ("scale_up", "named"),
    [
        ("{status: NoActivity}", ""),
        ("{status: Backoff}", "web"),
        ("{status: Backoff, backoffInfo: {errorCode: QUOTA_EXCEEDED}}", "web (QUOTA_EXCEEDED)"),
        ("Backoff", ""),
    ],
)
def test_a_note_names_groups_that_could_not_grow(of_labels, scale_up, named):
    text = f"{STATUS.format(name='eks-web-5ec4')}  scaleUp: {scale_up}\n"
    status = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
        "data": {"status": text},
    }
    found = of_labels({"eks.amazonaws.com/nodegroup": "web"}, more=[status])
    assert limits(found) == [("web", 3, 12)]
    notes = [one for one in found.notes if "could not add nodes" in one]
    said = f" to {named} when the dump was taken, but the answer assumes that it can."
    assert [said in one for one in notes] == ([True] if named else [])


@pytest.mark.parametrize(
    ("label", "named", "expected"),
    [
        pytest.param("kubernetes.azure.com/agentpool", ["aks-web-1-vmss"], [("web", 3, 12)],
                     id="the other group is not autoscaled"),
        pytest.param("kubernetes.azure.com/agentpool", ["aks-web-1-vmss", "aks-gpu-1-vmss"],
                     [("web", 3, 12)], id="and a third group has no nodes"),
        pytest.param("eks.amazonaws.com/nodegroup", ["eks-web-5ec4"], [("web", 3, 12)], id="EKS"),
        pytest.param("eks.amazonaws.com/nodegroup", ["eks-web-5ec4", "eks-5ec4"],
                     [("system", 1, 100), ("web", 3, 12)], id="the second name can be of either"),
        pytest.param("kubernetes.azure.com/agentpool", ["vmss-1"],
                     [("system", 1, 100), ("web", 1, 100)], id="the names have no known form"),
    ],
)  # fmt: skip
def test_groups_that_the_autoscaler_does_not_manage_keep_their_size(
    of_labels, label, named, expected
):
    head, entry = STATUS.split("nodeGroups:\n")
    text = f"{head}nodeGroups:\n" + "".join(entry.format(name=one) for one in named)
    status = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
        "data": {"status": text},
    }
    found = of_labels({label: "web"}, {label: "system"}, more=[status])
    assert limits(found) == expected
    note = "Not autoscaled, because missing in the ConfigMap cluster-autoscaler-status"
    assert (f"{note}: system." in found.notes) == (len(expected) == 1)
    absent = [one for one in found.notes if one.startswith("Groups without nodes")]
    assert ["aks-gpu-1-vmss;" in one for one in absent] == [True] * ("aks-gpu-1-vmss" in named)


@pytest.mark.parametrize(
    ("more", "others"),
    [((), []), (("--node-group-auto-discovery=asg:tag=x",), [("other", 1, 100)])],
)
def test_the_flag_of_one_group_leaves_others_to_discovery(of_labels, make, more, others):
    deployment = make.workload(name="ca", namespace="kube-system")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container |= {"image": "cluster-autoscaler:v1.36.0", "args": ["--nodes=1:9:ig", *more]}
    label = "kops.k8s.io/instancegroup"
    found = of_labels({label: "ig"}, {label: "other"}, more=[deployment])
    assert limits(found) == [("ig", 1, 9), *others]


@pytest.mark.parametrize(
    "text",
    [
        "nodeGroups: [1",
        "nodeGroups: 5",
        "[" * 100_000,
        STATUS.format(name="ig").replace("3", ".inf"),
        STATUS.format(name="ig").replace("3", "[1]"),
        STATUS.format(name="ig").replace("3", "-1"),
        STATUS.format(name="ig").replace("3", "9" * 5_000),
        STATUS.format(name="[ig]"),
        OLD_STATUS.format(name="ig").replace("3", "9" * 5_000),
        "  Name:  ig\n" * 50_000,
    ],
    ids=lambda text: text.strip()[:20],
)
def test_an_unreadable_status_sets_no_limits(of_labels, text):
    status = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
        "data": {"status": text},
    }
    found = of_labels({"kops.k8s.io/instancegroup": "ig"}, more=[status])
    assert limits(found) == [("ig", 1, 100)]


@pytest.mark.parametrize("size", ["²", "9" * 5_000, "-1", " 1", ""], ids=lambda size: size[:5])
def test_annotations_and_flags_with_invalid_sizes_set_no_limits(of_labels, make, size):
    name = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-{}-size"
    machines = {
        "apiVersion": "cluster.x-k8s.io/v1beta1",
        "kind": "MachineDeployment",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "annotations": {name.format("min"): size, name.format("max"): "7"},
        },
    }
    autoscaler = make.workload(name="ca", namespace="kube-system")
    container = autoscaler["spec"]["template"]["spec"]["containers"][0]
    container["image"] = "registry/cluster-autoscaler:v1.36.0"
    container["command"] = ["./cluster-autoscaler", f"--nodes={size}:7:web"]
    found = of_labels({"cluster.x-k8s.io/deployment-name": "web"}, more=[machines, autoscaler])
    assert limits(found) == [("web", 1, 100)]


def test_annotations_of_machine_deployments_set_limits(of_labels):
    size = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-{}-size"
    deployment = {
        "apiVersion": "cluster.x-k8s.io/v1beta1",
        "kind": "MachineDeployment",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "annotations": {size.format("min"): "2", size.format("max"): "7"},
        },
    }
    found = of_labels({"cluster.x-k8s.io/deployment-name": "web"}, more=[deployment])
    assert limits(found) == [("web", 2, 7)]


def test_a_group_whose_minimum_is_above_its_maximum_is_not_autoscaled(of_labels):
    """Upstream ignores such a MachineDeployment; a size that is equal to both is possible."""
    size = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-{}-size"
    deployments = [
        {
            "apiVersion": "cluster.x-k8s.io/v1beta1",
            "kind": "MachineDeployment",
            "metadata": {
                "name": name,
                "namespace": "default",
                "annotations": {size.format("min"): low, size.format("max"): "7"},
            },
        }
        for name, low in (("web", "8"), ("db", "7"))
    ]
    label = "cluster.x-k8s.io/deployment-name"
    found = of_labels({label: "web"}, {label: "db"}, more=deployments)
    assert limits(found) == [("db", 7, 7)]
    why = "the minimum in the annotations of MachineDeployments is above the maximum"
    assert found.notes == (
        "Node groups by the labels of Cluster API.",
        "Limits of node groups from the annotations of MachineDeployments.",
        f"Not autoscaled, because {why}: web.",
    )


def test_prices_of_instance_types_are_those_of_groups(found, make, write):
    labels = {"kops.k8s.io/instancegroup": "ig", "node.kubernetes.io/instance-type": "small"}
    nodes = [make.node("n", **labels), make.node("m", **{"kops.k8s.io/instancegroup": "other"})]
    types = str(write("types.csv", "name,cpu,memory,price\nsmall,4,16Gi,0.2\n"))
    read = read_autoscaling(AutoscaleOptions("cluster-autoscaler", "", types), found(*nodes))
    assert [(one.id, one.price) for one in read.config.groups] == [("ig", 0.2), ("other", None)]
    assert read.notes[-1].startswith("No price is known for the nodes of other; ")


def test_nodes_of_one_group_have_the_prices_of_their_own_types(found, make, write):
    """New nodes cost as much as the group's first node."""
    group, kind = {"kops.k8s.io/instancegroup": "ig"}, "node.kubernetes.io/instance-type"
    nodes = [make.node(name, **group, **{kind: name}) for name in ("large", "small")]
    types = str(write("types.csv", "name,cpu,memory,price\nsmall,4,16Gi,0.2\nlarge,8,32Gi,0.4\n"))
    read = read_autoscaling(AutoscaleOptions("cluster-autoscaler", "", types), found(*nodes))
    [spec] = read.config.groups
    prices = [price_in_group(spec, {kind: name}) for name in ("small", "large", "other")]
    assert prices == [0.2, 0.4, 0.4]
    other = make.node("other", **group, **{kind: "other"})
    read = read_autoscaling(AutoscaleOptions("cluster-autoscaler", "", types), found(*nodes, other))
    assert price_in_group(read.config.groups[0], {kind: "other"}) is None
    assert read.notes[-1].startswith("No price is known for the nodes of ig (other); ")


@pytest.mark.parametrize("names", ["abc", "cba"])
def test_nodes_of_one_group_have_the_prices_of_their_capacity_types(found, make, write, names):
    """The type of the third node is in the older label only."""
    group, kind = {"kops.k8s.io/instancegroup": "ig"}, "node.kubernetes.io/instance-type"
    labels = {
        "a": {kind: "small"},
        "b": {kind: "small", "karpenter.sh/capacity-type": "spot"},
        "c": {"beta.kubernetes.io/instance-type": "large"},
    }
    nodes = [make.node(name, **group, **labels[name]) for name in names]
    text = "name,cpu,memory,price,spotPrice\nsmall,4,16Gi,0.2,0.1\nlarge,8,32Gi,0.4,0.3\n"
    types = str(write("types.csv", text))
    read = read_autoscaling(AutoscaleOptions("cluster-autoscaler", "", types), found(*nodes))
    [spec] = read.config.groups
    assert [price_in_group(spec, labels[name]) for name in "abc"] == [0.2, 0.1, 0.4]


def test_a_note_names_the_type_of_spot_nodes_without_a_spot_price(found, make, write):
    labels = {"eks.amazonaws.com/nodegroup": "g", "eks.amazonaws.com/capacityType": "SPOT"}
    node = make.node("n", **labels, **{"node.kubernetes.io/instance-type": "small"})
    types = str(write("types.csv", "name,cpu,memory,price\nsmall,4,16Gi,0.2\n"))
    read = read_autoscaling(AutoscaleOptions("cluster-autoscaler", "", types), found(node))
    assert [one.price for one in read.config.groups] == [pytest.approx(0.08)]
    assert read.notes[-1].startswith("--instance-types states no spot price of small.")


def test_with_off_a_note_says_that_an_installed_autoscaler_does_not_act(found, make):
    deployment = make.workload(name="ca", namespace="kube-system")
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = "cluster-autoscaler"
    quiet = read_autoscaling(AutoscaleOptions(), found(make.node("n"), deployment))
    assert quiet.config is None
    assert quiet.notes[0].startswith("The dump has a Cluster Autoscaler, which is not simulated")
    auto = read_autoscaling(AutoscaleOptions("auto"), found(make.node("n")))
    assert (auto.config, len(auto.notes)) == (None, 1)


@pytest.fixture
def machine(make):
    """Returns a node of Cluster API whose machine has this owner."""

    def build(name, kind, owner):
        node = make.node(name)
        node["metadata"]["annotations"] = {
            "cluster.x-k8s.io/owner-kind": kind,
            "cluster.x-k8s.io/owner-name": owner,
        }
        return node

    return build


def test_nodes_of_cluster_api_name_the_machine_set_of_their_deployment(found, machine):
    """The nodes of the control plane name its KubeadmControlPlane, which has no fixed limits."""
    nodes = [
        machine("a", "MachineSet", "md-x7k2p"),
        machine("b", "MachineSet", "md-gpu-9c4dd"),
        machine("c", "KubeadmControlPlane", "prod-control-plane"),
    ]
    entries = [STATUS.format(name=f"MachineDeployment/default/{one}") for one in ("md-gpu", "md")]
    text = entries[0].replace("12", "99") + entries[1].partition("nodeGroups:\n")[2]
    status = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
        "data": {"status": text},
    }
    read = read_autoscaling(ON, found(*nodes, status))
    assert limits(read) == [("md", 3, 12), ("md-gpu", 3, 99)]


def test_the_machine_sets_of_a_machine_deployment_are_one_group(found, machine):
    """A rollout, two MachineSets without MachineDeployment, and a MachinePool."""
    owners = [("MachineSet", one) for one in ("md-x7k2p", "md-5d6b7c8f9b", "main", "main-spare")]
    owners.append(("MachinePool", "mp-x7k2p"))
    nodes = [machine(f"n{i}", *one) for i, one in enumerate(owners)]
    objects = found(*nodes)
    groups = read_autoscaling(ON, objects).config.groups
    members = {one.id: [at.ref.name for at in objects if one.owns(at.node)] for one in groups}
    assert members == {
        "main": ["n2"],
        "main-spare": ["n3"],
        "md": ["n0", "n1"],
        "mp-x7k2p": ["n4"],
    }


@pytest.mark.parametrize("has_deployment", [False, True])
def test_a_machine_set_without_machine_deployment_is_a_group_with_its_own_name(
    found, machine, has_deployment
):
    """Its name may end like those of the MachineSets of a MachineDeployment."""
    sizes = {
        "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size": "3",
        "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": "12",
    }
    machine_set = {
        "apiVersion": "cluster.x-k8s.io/v1beta1",
        "kind": "MachineSet",
        "metadata": {"name": "pool-wxz27", "namespace": "default", "annotations": sizes},
    }
    if has_deployment:
        owner = {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineDeployment"}
        owner |= {"name": "pool", "uid": "d", "controller": True}
        machine_set["metadata"]["ownerReferences"] = [owner]
    read = read_autoscaling(ON, found(machine("a", "MachineSet", "pool-wxz27"), machine_set))
    if has_deployment:  # its limits are those in the annotations of the MachineDeployment
        assert [one.id for one in read.config.groups] == ["pool"]
    else:
        assert limits(read) == [("pool-wxz27", 3, 12)]
        assert "Limits of node groups from the annotations of MachineSets." in read.notes


@pytest.mark.parametrize(
    ("replicas", "status", "is_stopped"),
    [
        (1, {"readyReplicas": 1}, False),
        (1, {"observedGeneration": 1}, True),
        (0, {"observedGeneration": 1}, True),
        pytest.param(1, None, False, id="a Deployment that a user has written"),
    ],
)
@pytest.mark.parametrize("autoscaler", ["cluster-autoscaler", "karpenter"])
@pytest.mark.parametrize("choice", ["off", "auto"])
def test_an_autoscaler_without_a_ready_pod_is_named(
    found, make, *, choice, autoscaler, replicas, status, is_stopped
):
    """It may be the reason why pods are pending in the cluster."""
    deployment = make.workload(name="scaler", namespace="kube-system", replicas=replicas)
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container["image"] = f"registry/{autoscaler}:v1"
    if status is not None:
        deployment["status"] = status
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "x"}}
    pool["spec"] = {"template": {"spec": {"requirements": []}}}
    instance = {"node.kubernetes.io/instance-type": "m", "kops.k8s.io/instancegroup": "ig"}
    objects = [make.node("n", **instance), deployment]
    objects += [pool] if autoscaler == "karpenter" else []
    notes = read_autoscalers("dump", found(*objects), AutoscaleOptions(choice)).notes
    note = "Deployment kube-system/scaler has no ready pod in the dump"
    assert any(one.startswith(note) for one in notes) == is_stopped


@pytest.mark.parametrize(
    ("pools", "acts"), [(0, True), (1, False)], ids=["the status alone", "NodePools, too"]
)
def test_the_status_shows_an_autoscaler_that_the_provider_runs(found, make, pools, acts):
    """Beside NodePools, it may be a remainder."""
    status = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
        "data": {"status": "autoscalerStatus: Running"},
    }
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"}}
    node = make.node("n", **{"kubernetes.azure.com/agentpool": "user"})
    objects = found(node, status, *[pool] * pools)
    auto = read_autoscaling(AutoscaleOptions("auto"), objects)
    assert (auto.config is not None) == acts
    quiet = read_autoscaling(AutoscaleOptions(), objects)
    assert any("has a Cluster Autoscaler" in one for one in quiet.notes) == acts


@pytest.mark.parametrize(
    ("label", "expander", "balances", "skips"),
    [
        ("kubernetes.azure.com/agentpool", "random", False, False),
        ("cloud.google.com/gke-nodepool", "least-waste", True, False),
        ("eks.amazonaws.com/nodegroup", "least-waste", False, True),
    ],
)
def test_a_provider_that_runs_the_autoscaler_sets_its_flags(
    of_labels, label, expander, balances, skips
):
    """A note names the provider and the assumed flags."""
    found = of_labels({label: "web"})
    options = found.config.options
    assert options.expander == (expander,)
    assert options.balance_similar_node_groups == balances
    assert options.skip_nodes_with_local_storage == skips
    assert any("runs Cluster Autoscaler" in one for one in found.notes) != skips


def test_an_autoscaler_in_a_hosted_cluster_has_its_own_flags(of_labels, make):
    deployment = make.workload(name="ca", namespace="kube-system")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container |= {"image": "cluster-autoscaler", "command": ["./cluster-autoscaler", "--v=4"]}
    found = of_labels({"kubernetes.azure.com/agentpool": "web"}, more=[deployment])
    assert found.config.options.skip_nodes_with_local_storage
    assert not any("runs Cluster Autoscaler" in one for one in found.notes)


def test_a_template_is_a_node_without_its_individual_labels_and_status(of_labels):
    found = of_labels({"kops.k8s.io/instancegroup": "ig", "kubernetes.io/hostname": "n0"})
    [group] = found.config.groups
    assert group.template["metadata"] == {"labels": {"kops.k8s.io/instancegroup": "ig"}}
    assert group.template["status"]["allocatable"]["cpu"] == "4"


GROUP = {"name": "g", "min": 0, "max": 3, "labels": {"pool": "a"}}
TEMPLATE = {"capacity": {"cpu": "8", "memory": "32Gi", "pods": "58"}}


@pytest.fixture
def of_file(found, make, write):
    """The configuration of a file with these groups, for one node of pool a."""

    def read(*groups, **more):
        text = json.dumps({"node-groups": groups, **more})
        options = AutoscaleOptions("cluster-autoscaler", str(write("g.yaml", text)))
        return read_autoscaling(options, found(make.node("n", pool="a"))).config

    return read


def test_a_file_sets_all_fields_of_a_group(of_file):
    config = of_file(
        {
            **GROUP,
            "labels": {"pool": "gpu"},
            "template": {**TEMPLATE, "taints": [{"key": "gpu", "effect": "NoSchedule"}]},
            "price": 1.5,
            "provision-time": "3m",
            "out-of-capacity": [{"after": "1m", "for": "2m"}],
            "options": {"scale-down-unneeded-time": "1m"},
        },
        flags={"expander": "price"},
    )
    [group] = config.groups
    assert (group.price, group.provision_time) == (1.5, seconds(180))
    assert group.out_of_capacity == ((seconds(60), seconds(180)),)
    assert group.template["metadata"]["labels"] == {"pool": "gpu"}
    assert config.options.expander == ("price",)


@pytest.mark.parametrize(
    ("stated", "capacity", "allocatable"),
    [
        ({"capacity": {"cpu": "4"}}, {"cpu": "4", "pods": "110"}, {"cpu": "4", "pods": "110"}),
        (
            {"capacity": {"cpu": "4", "pods": "8"}, "allocatable": {"cpu": "3"}},
            {"cpu": "4", "pods": "8"},
            {"cpu": "3", "pods": "8"},
        ),
    ],
    ids=["capacity without pods", "allocatable without pods"],
)
def test_a_template_has_defaults_for_each_resource(of_file, stated, capacity, allocatable):
    """A node without an amount of pods would take no pods."""
    [group] = of_file({**GROUP, "template": stated}).groups
    status = group.template["status"]
    assert {name: str(amount) for name, amount in status["capacity"].items()} == capacity
    assert {name: str(amount) for name, amount in status["allocatable"].items()} == allocatable


def test_startup_and_removal_times_can_be_zero(of_file):
    [group] = of_file({**GROUP, "provision-time": "0s", "deletion-time": "0s"}).groups
    assert (group.provision_time, group.deletion_time) == (0, 0)


def test_a_group_without_a_price_beside_a_group_with_a_price_is_named(found, make, write):
    """Without all prices there is no total cost, so the answer names the group."""
    priced, other = {**GROUP, "price": 1.5}, {**GROUP, "name": "other"}

    def notes(*groups):
        file = str(write("g.yaml", json.dumps({"node-groups": groups})))
        options = AutoscaleOptions("cluster-autoscaler", file)
        return read_autoscaling(options, found(make.node("n", pool="a"))).notes

    [note] = notes(priced, other)
    assert note.startswith("No price is known for the nodes of other; ")
    assert notes(priced) == notes(other) == ()


def test_a_group_of_a_file_has_the_zones_of_its_nodes(found, make, write):
    nodes = [make.node(f"n{zone}", pool="a", **{ZONE: zone}) for zone in "ab"]
    other = make.node("other", pool="b", **{ZONE: "c"})
    file = str(write("g.yaml", json.dumps({"node-groups": [GROUP]})))
    config = read_autoscaling(
        AutoscaleOptions("cluster-autoscaler", file), found(other, *nodes)
    ).config
    [group] = config.groups
    assert [one["metadata"]["labels"][ZONE] for one in group.templates] == ["a", "b"]


def test_without_a_template_the_first_node_of_a_group_is_the_template(of_file):
    [group] = of_file(GROUP).groups
    assert group.template["status"]["allocatable"]["cpu"] == "4"


@pytest.mark.parametrize(
    ("groups", "more", "says"),
    [
        ([], {}, "node-groups: is empty"),
        ([GROUP, GROUP], {}, r"node-groups\[1\].name: 'g' appears twice"),
        ([{**GROUP, "min": 4}], {}, r"node-groups\[0\]: must satisfy 0 <= min <= max"),
        ([{**GROUP, "labels": {}}], {}, r"node-groups\[0\].labels: is empty"),
        ([{**GROUP, "labels": {"x": "y"}}], {}, r"node-groups\[0\]: no node has these labels"),
        ([{**GROUP, "colour": 1}], {}, r"node-groups\[0\].colour: unknown field"),
        ([{**GROUP, "provision-time": "soon"}], {}, r"node-groups\[0\].provision-time: "),
        ([{**GROUP, "price": -1}], {}, r"node-groups\[0\].price: -1.0 is not from 0 to "),
        ([{**GROUP, "options": {"x": 1}}], {}, r"node-groups\[0\].options.x: no flag --x"),
        (
            [{**GROUP, "options": {"expander": "price"}}],
            {},
            r"node-groups\[0\].options.expander: cannot be set for a single node group",
        ),
        ([{**GROUP, "name": ""}], {}, r"node-groups\[0\].name: is empty"),
        ([{**GROUP, "labels": {"a b": "c"}}], {}, r"node-groups\[0\].labels\[a b\]: name part"),
        (
            [{**GROUP, "template": {"capacity": {"cpu": "1e30"}}}],
            {},
            r"node-groups\[0\].template.capacity.cpu: 1e30 is not from 0 to 1,000,000",
        ),
        (
            [{**GROUP, "template": {**TEMPLATE, "allocatable": {"pods": 1.5}}}],
            {},
            r"node-groups\[0\].template.allocatable.pods: 1.5 is not a whole number",
        ),
        (
            [{**GROUP, "template": {**TEMPLATE, "labels": {"a": "b c"}}}],
            {},
            r"node-groups\[0\].template.labels\[a\]: a valid label must be",
        ),
        (
            [{**GROUP, "template": {**TEMPLATE, "taints": [{"key": "a", "effect": "Foo"}]}}],
            {},
            r"node-groups\[0\].template.taints\[0\].effect: 'Foo' is not a taint effect",
        ),
        ([GROUP], {"flags": {"expander": "grpc"}}, "flags.expander: grpc calls an external server"),
    ],
)
def test_a_bad_file_names_the_line_and_the_field(of_file, groups, more, says):
    with pytest.raises(InputError, match=r": line [1-9]\d*: " + says):
        of_file(*groups, **more)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (AutoscaleOptions("karpentr"), "--autoscale: no autoscaler 'karpentr'"),
        (AutoscaleOptions("off", "g.yaml"), "--node-groups: needs --autoscale"),
        (ON, "--autoscale: no node has a label of a node group"),
    ],
)
def test_the_error_names_an_invalid_option(found, make, options, says):
    with pytest.raises(InputError, match=says):
        read_autoscaling(options, found(make.node("n")))


@pytest.mark.parametrize(
    "containers", [["x"], {"a": 1}, [{"image": 7}], [{"image": "i", "args": "x"}]]
)
def test_a_malformed_deployment_is_not_an_autoscaler(containers):
    """The Deployment is refused when it is loaded."""
    value = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "ca"},
        "spec": {"template": {"spec": {"containers": containers}}},
    }
    (found,) = manifests([Document("f.yaml", value)])
    assert read_autoscaling(AutoscaleOptions(), [found]) == Autoscaling(None)
