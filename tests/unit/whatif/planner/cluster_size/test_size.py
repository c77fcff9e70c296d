"""size: the cheapest nodes, proven lower bounds, survived failures, and the limiting resource."""

from __future__ import annotations

from math import comb

import pytest
from msgspec.structs import replace
from tests.unit.whatif.planner.conftest import daemon_pod, deployment, manifests

from fairlead.api.codec import decode_as
from fairlead.api.well_known_label import HOSTNAME, INSTANCE_TYPE, OS, ZONE
from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.engine.autoscaling.karpenter.labels import NODE_POOL
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.testing.device_builders import (
    make_device_class,
    make_device_request,
    make_pod_resource_claims,
    make_resource_claim,
    make_slice,
)
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.configuration.autoscaling.instance_type_file import StatedType
from fairlead.whatif.input.error import InputError
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.cluster_size import node_set
from fairlead.whatif.planner.cluster_size.cost_bound import cost_bound
from fairlead.whatif.planner.cluster_size.node_offer import (
    assumption_notes,
    estimated_types,
    failed_zone_notes,
    node_offers,
    price_of_node,
    spot_notes,
)
from fairlead.whatif.planner.cluster_size.search import SizeSearch
from fairlead.whatif.planner.cluster_size.size_answer import SizeQuestion, size_answer
from fairlead.whatif.planner.cluster_size.size_option import (
    check_survival,
    parse_headroom,
    parse_survival,
)
from fairlead.whatif.planner.cluster_size.size_result import SizeResult
from fairlead.whatif.planner.cluster_size.survival import Survival
from fairlead.whatif.question import what_if
from fairlead.whatif.run.progress import NoProgress

NO_FAILURE = Survival()
SYSTEMS = ("linux", "windows")


def stated(name, cpu, memory, price):
    return StatedType(name, {"cpu": cpu, "memory": memory}, prices={("on-demand", ""): price})


SMALL = stated("small", "4", "16Gi", 1.0)
LARGE = stated("large", "8", "32Gi", 1.8)


def sized(planner, *, types=(), survival=NO_FAILURE, headroom=0.0, keep=(), effort=5, seed=0):
    model = planner.model
    replaced = [info for info in model.table.nodes() if info.name not in keep]
    offers = node_offers(model, replaced, types, headroom)
    search = SizeSearch(model, offers, survival, NoProgress(), seed)
    return search.run(replaced, effort)


def fleet(found):
    """Return the number of nodes by type."""
    counts = {}
    for offer in found.nodes.values():
        counts[offer.node_type] = counts.get(offer.node_type, 0) + 1
    return counts


def test_the_pods_determine_the_number_of_nodes(planner, make):
    """Six cores on nodes of four, of which a DaemonSet uses one, need two nodes."""
    names = ("a", "b", "c", "d")
    objects = [*map(make.node, names), *(daemon_pod(make, name, "1") for name in names)]
    found = sized(planner(*objects, *deployment(make, "web", ["a", "a", "b", "b", "c", "d"])))
    assert len(found.nodes) == 2
    assert found.bound.cost == pytest.approx(found.cost)  # the plan is proven to be the cheapest


def test_new_nodes_have_the_daemonset_pods_of_their_pool(planner, make):
    """Seven cores on nodes of four, of which a DaemonSet uses one, need three nodes."""
    names = ("a", "b", "c", "d")
    objects = [*map(make.node, names), *(daemon_pod(make, name, "1") for name in names)]
    found = sized(planner(*objects, *deployment(make, "web", ["a", "b", "c"] * 2 + ["d"])))
    assert len(found.nodes) == 3
    assert found.bound.cost > 2 * found.cost / 3


def test_a_pending_pod_of_a_daemonset_goes_with_its_node(planner, make):
    """It is pinned to a node that is replaced. The new node has a pod of the DaemonSet, too."""
    pending = daemon_pod(make, "b", "1")
    del pending["spec"]["nodeName"]
    pending["status"] = {"phase": "Pending"}
    web = deployment(make, "web", ["b", "b", "b", "b"])
    agent = make.workload("DaemonSet", "agent", cpu="1")
    agent["metadata"]["uid"] = pending["metadata"]["ownerReferences"][0]["uid"]
    objects = [make.node("a"), make.node("b"), daemon_pod(make, "a", "1"), pending, agent, *web]
    found = sized(planner(*objects))
    assert (len(found.nodes), found.unplaceable, found.waiting_today) == (2, {}, 1)


FULL = {
    "a": ("1300m", "1300m", "700m", "700m"),
    "b": ("1300m", "1100m", "1600m"),
    "c": ("1300m", "500m", "1300m", "500m", "400m"),
}


def test_no_more_nodes_than_the_present_ones_are_proposed(planner, make):
    """The nodes are exactly full; placing the largest pods first would need a fourth node."""
    pods = [
        make.pod(f"p-{name}-{number}", cpu=cpu, node_name=name)
        for name, amounts in FULL.items()
        for number, cpu in enumerate(amounts)
    ]
    found = sized(planner(*map(make.node, FULL), *pods))
    assert len(found.nodes) == 3
    assert found.is_cheapest


def test_of_equally_cheap_sets_the_search_begins_with_the_present_nodes(planner, make):
    """Today, each node has a large pod and five tiny ones; without one node, all still fit.

    If the large pods come first, they fill nodes, which then have no cpu for their share of the
    tiny pods, and a sixth node is needed.
    """
    names = tuple("abcdef")
    nodes = [make.node(name, cpu="3920m") for name in names]
    for node in nodes:
        node["status"]["allocatable"]["pods"] = "10"
    objects = [*nodes, *(daemon_pod(make, name, "900m") for name in names)]
    objects += deployment(make, "large", names)
    objects += deployment(make, "tiny", names * 5, cpu="10m")
    ports = [{"containerPort": 80, "hostPort": 80}]
    for name in ("a", "b"):
        pod = make.pod(f"port-{name}", cpu="100m", node_name=name)
        pod["spec"]["containers"][0]["ports"] = ports
        objects.append(pod)
    found = sized(planner(*objects))
    assert len(found.nodes) == 5
    assert found.is_cheapest


def test_the_copies_of_todays_nodes_have_todays_pods(planner, make):
    """In the order of their names, the pods would first all go to one zone, which skews them."""
    nodes = [make.node(name, **{ZONE: name[0]}) for name in ("a1", "a2", "b1", "b2")]
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    names = [name for name in ("a1", "a2", "b1", "b2") for _ in range(2)]
    made = planner(
        *nodes, *deployment(make, "web", names, cpu="2", topologySpreadConstraints=[spread])
    )
    found = sized(made)
    assert len(found.nodes) == 4
    groups = {
        tuple(sorted(pod.key for pod in info.pods.values())) for info in made.model.table.nodes()
    }
    assert groups == {(f"default/web-1-{n}", f"default/web-1-{n + 1}") for n in (0, 2, 4, 6)}


def test_nodes_with_other_extended_resources_or_pod_numbers_are_other_kinds(planner, make):
    nodes = [make.node("a"), make.node("b"), make.node("c"), make.node("d")]
    nodes[1]["status"]["allocatable"]["example.com/gpu"] = "2"
    nodes[2]["status"]["allocatable"]["pods"] = "8"
    model = planner(*nodes).model
    found = {one.today: one for one in node_offers(model, model.table.nodes(), (), 0.0)}
    assert set(found) == {("a", "d"), ("b",), ("c",)}
    assert found["b",].node_type == f"{found['a', 'd'].node_type}/2 example.com/gpu"


def gpu_cluster(make, *names):
    """Nodes `names`, of which a and b have a GPU each, and two pods with a claim for a GPU."""
    claims = ["gpu-0", "gpu-1"]
    pods = [
        make.pod(f"p{at}", node_name=node, **make_pod_resource_claims(claim))
        for at, (node, claim) in enumerate(zip("ab", claims, strict=True))
    ]
    dra = [make_device_class("gpu"), make_slice("a"), make_slice("b")]
    dra += [make_resource_claim(claim, make_device_request()) for claim in claims]
    nodes = [make.node(name) for name in names]
    return [*nodes, *pods, *manifests("resource.k8s.io/v1", *dra)]


def test_nodes_with_other_devices_are_another_kind(planner, make):
    """Node c is equal, but has no devices. As the newest node, it was the model of new nodes."""
    made = planner(*gpu_cluster(make, "a", "b", "c"))
    found = {one.today: one for one in node_offers(made.model, made.model.table.nodes(), (), 0.0)}
    sizes = {today: one.size for today, one in found.items()}
    assert sizes == {("a", "b"): "1 gpu.example.com device", ("c",): "no devices"}
    assert not sized(made).unplaceable
    assert len(made.model.table.nodes()) == 2


def test_a_new_node_of_a_stated_type_has_the_devices_of_that_type(planner, make):
    """The newest node of the pool is of another type, without devices."""
    objects = [*gpu_cluster(make, "a", "b"), make.node("c")]
    for node, kind in zip([*objects[:2], objects[-1]], ("gpu", "gpu", "plain"), strict=True):
        node["metadata"]["labels"][INSTANCE_TYPE] = kind
    made = planner(*objects)
    found = sized(made, types=[stated("gpu", "4", "16Gi", 2.0), stated("plain", "4", "16Gi", 1.0)])
    assert not found.unplaceable
    assert sorted(one.node_type for one in found.nodes.values()) == ["gpu", "gpu"]


def test_nodes_of_a_stated_type_with_other_devices_are_another_kind(planner, make):
    """Node c, the newest, has no devices."""
    objects = gpu_cluster(make, "a", "b", "c")
    for node in objects[:3]:
        node["metadata"]["labels"][INSTANCE_TYPE] = "gpu"
    made, types = planner(*objects), [stated("gpu", "4", "16Gi", 2.0)]
    offers = node_offers(made.model, made.model.table.nodes(), types, 0.0)
    sizes = {one.today: one.size for one in offers}
    assert sizes == {("a", "b"): "1 gpu.example.com device", ("c",): "no devices"}
    found = sized(made, types=types)
    assert not found.unplaceable
    assert len(found.nodes) == 2


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"nodeSelector": {"disk": "ssd"}}, "node(s) didn't match Pod's node affinity/selector"),
        ({"cpu": "40"}, "Insufficient cpu (no node is large enough; the largest has 4 cpu)"),
    ],
)
def test_the_reason_of_an_unplaced_pod_is_about_an_offered_node(planner, make, spec, why):
    """The first pod is placed when there are no nodes yet."""
    found = sized(planner(make.node("a"), make.pod("p", **spec), make.pod("q", cpu="100m")))
    assert found.unplaceable == {"default/p": why}
    assert found.is_proven
    assert not found.is_cheapest


def test_pods_that_are_pending_at_present_are_counted(planner, make):
    pods = [make.pod("runs", node_name="a"), make.pod("waits", cpu="4")]
    found = sized(planner(make.node("a"), *pods))
    question = SizeQuestion(1, 0, 1.0, NO_FAILURE, 0.0, 5, False, ())
    answer = size_answer(question, found, "dump.yaml", ()).to_json()
    assert answer["verdict"] == "2 nodes run everything (today 1)."
    assert "Today, 1 of the pods waits for a node." in answer["findings"]


def test_replaced_nodes_that_run_the_control_plane_are_stated(planner, make):
    found = sized(planner(make.node("a"), make.pod("runs", node_name="a")))
    question = SizeQuestion(1, 0, 1.0, NO_FAILURE, 0.0, 5, False, (), 1)
    findings = size_answer(question, found, "dump.yaml", ()).to_json()["findings"]
    assert findings[1] == (
        "1 of the nodes to replace runs the control plane; "
        "--keep node-role.kubernetes.io/control-plane= keeps it."
    )


def test_each_offer_has_the_daemonset_pods_that_would_run_there(planner, make):
    """The DaemonSet runs only in one zone, so nodes in the other zone have more room."""
    agent = make.workload("DaemonSet", "agent", cpu="1", nodeSelector={ZONE: "z1"})
    agent["metadata"]["uid"] = "agent-uid"
    nodes = [make.node("a", **{ZONE: "z1"}), make.node("b", **{ZONE: "z2"})]
    model = planner(*nodes, agent).model
    offers = node_offers(model, model.table.nodes(), (), 0.0)
    assert {one.zone: len(one.own_pods) for one in offers} == {"z1": 1, "z2": 0}
    assert {one.zone: one.room(("cpu",))[0] for one in offers} == {"z1": 3000, "z2": 4000}
    [pod] = next(one for one in offers if one.zone == "z1").node("new-1").own_pods
    assert (pod.metadata.name, pod.spec.node_name) == ("agent-new-1", "new-1")


@pytest.mark.parametrize(
    ("pods", "types"),
    [(4, {"small": 1}), (8, {"large": 1}), (12, {"large": 1, "small": 1}), (16, {"large": 2})],
)
def test_the_cheapest_mix_of_types_is_found(planner, make, pods, types):
    made = planner(make.node("a", cpu="64"), *deployment(make, "web", ["a"] * pods))
    found = sized(made, types=(SMALL, LARGE))
    assert fleet(found) == types
    assert found.bound.cost <= found.cost + 1e-9


def test_labels_of_one_zone_or_type_do_not_divide_a_pool(planner, make):
    """EKS labels nodes with the id of the zone, Karpenter with facts about the instance type."""
    zone_id, cpus = "topology.k8s.aws/zone-id", "karpenter.k8s.aws/instance-cpu"
    nodes = [
        make.node(
            f"{zone}-{cpu}",
            cpu=cpu,
            pool="web",
            **{ZONE: zone, zone_id: f"id-{zone}", INSTANCE_TYPE: f"m{cpu}", cpus: cpu},
        )
        for zone, cpu in (("a", "4"), ("b", "8"))
    ]
    model = planner(*nodes).model
    offers = node_offers(model, list(model.table.nodes()), (), 0.0)
    assert {one.pool for one in offers} == {""}
    made = [one.node("new").node.metadata.labels for one in offers]
    assert {(one[ZONE], one.get(zone_id), one[cpus]) for one in made} == {
        ("a", "id-a", "4"), ("b", None, "4"), ("a", None, "8"), ("b", "id-b", "8"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("groups", "found"),
    [
        pytest.param(
            {"web-a": "a", "web-b": "b"}, {("web-a", "a"), ("web-b", "b")}, id="one for each zone"
        ),
        pytest.param(
            {"web-a": "a", "web-b": "a", "db": "b"},
            {(name, zone) for name in ("web-a", "web-b", "db") for zone in "ab"},
            id="two groups in a zone",
        ),
        pytest.param(
            {"web-a": "ab", "web-b": "b"},
            {(name, zone) for name in ("web-a", "web-b") for zone in "ab"},
            id="a group in two zones",
        ),
    ],
)
def test_node_groups_of_one_zone_each_get_no_nodes_in_other_zones(planner, make, groups, found):
    """An Auto Scaling group of a single zone cannot start a machine elsewhere."""
    group, template = "eks.amazonaws.com/nodegroup", "eks.amazonaws.com/sourceLaunchTemplateId"
    nodes = [
        make.node(f"{name}-{zone}", **{ZONE: zone, group: name, template: f"lt-{name}"})
        for name, zones in groups.items()
        for zone in zones
    ]
    model = planner(*nodes).model
    offers = node_offers(model, list(model.table.nodes()), (), 0.0)
    made = [one.node("new").node.metadata.labels for one in offers]
    assert {(one[group], one[ZONE]) for one in made} == found


def test_all_pods_run_after_the_loss_of_any_zone(planner, make):
    """Eight cores in two zones: either zone alone must hold them, so two nodes in each."""
    nodes = [make.node("a", **{ZONE: "z1"}), make.node("b", **{ZONE: "z2"})]
    nodes += [make.node("c", **{ZONE: "z1"}), make.node("d", **{ZONE: "z2"})]
    made = planner(*nodes, *deployment(make, "web", ["a", "b", "c", "d"] * 2))
    found = sized(made, survival=Survival(zones=True))
    zones = sorted(offer.zone for offer in found.nodes.values())
    assert zones == ["z1", "z1", "z2", "z2"]
    assert found.bound.cost == pytest.approx(found.cost)
    assert found.tried == 2


@pytest.mark.parametrize(
    ("count", "survival", "says"),
    [
        (4, Survival(zones=True), "Today's nodes also survive the loss of any zone."),
        (
            5,
            Survival(zones=True),
            "Today's nodes do not survive the loss of zone z1 or zone z2: without zone z1, 1 pod",
        ),
        (
            8,
            Survival(nodes=1),
            "Today's nodes do not survive the loss of a or b: without a, 4 pods stay pending, of ",
        ),
    ],
)
def test_the_answer_says_whether_todays_nodes_survive_the_failures(
    planner, make, count, survival, says
):
    """Each of the two nodes has four cores."""
    nodes = [make.node("a", **{ZONE: "z1"}), make.node("b", **{ZONE: "z2"})]
    pods = deployment(make, "web", (["a"] * 4 + ["b"] * 4)[:count])
    found = sized(planner(*nodes, *pods), survival=survival)
    assert sum(one.today == ("a",) for one in found.nodes.values())  # the search had the pods
    question = SizeQuestion(2, 0, 1.0, survival, 0.0, 5, False, ())
    findings = size_answer(question, found, "dump.yaml", ()).to_json()["findings"]
    assert [one for one in findings if one.startswith(says)]


def test_the_answer_says_if_only_the_places_of_pods_differ_from_today(planner, make):
    """The new nodes may survive a failure because the search places the pods differently."""
    nodes = [make.node("a", **{ZONE: "z1"}), make.node("b", **{ZONE: "z2"})]
    survival = Survival(zones=True)
    found = sized(planner(*nodes, *deployment(make, "web", ["a"] * 4 + ["b"])), survival=survival)
    found.nodes = {offer.today[0]: offer for offer in found.nodes.values()}
    assert set(found.nodes) == {"a", "b"}
    for replaced, says in [
        (2, "Today's nodes are the same set, but with the pods where they are now, they do not "),
        (3, "Today's nodes do not survive the loss of zone z1 or zone z2"),
    ]:
        question = SizeQuestion(replaced, 0, 1.0, survival, 0.0, 5, False, ())
        findings = size_answer(question, found, "dump.yaml", ()).to_json()["findings"]
        assert [one for one in findings if one.startswith(says)]


def test_the_number_of_failures_that_todays_nodes_do_not_survive_is_named(planner, make):
    nodes = [make.node(name, **{ZONE: f"z{name}"}) for name in "abcd"]
    pods = deployment(make, "web", ["a", "b", "c", "d"] * 3 + ["a", "b", "c"])
    survival = Survival(zones=True)
    question = SizeQuestion(3, 1, 1.0, survival, 0.0, 5, False, ())
    found = sized(planner(*nodes, *pods), survival=survival)
    answer = size_answer(question, found, "dump.yaml", ()).to_json()
    some = "Today's nodes do not survive 4 of the 4 failures that were tried: without zone za, 3"
    assert [one for one in answer["findings"] if one.startswith(some)]
    run = "new nodes in place of 3, and 1 kept node, run everything, even after"
    assert answer["verdict"].endswith(f" {run} the loss of any zone.")


def test_todays_nodes_are_not_blamed_for_pods_that_survive_on_no_nodes(planner, make):
    nodes = [make.node("a", **{ZONE: "z1"}), make.node("b", **{ZONE: "z2"})]
    pinned = deployment(make, "db", ["a"], nodeSelector={ZONE: "z1"})
    survival = Survival(zones=True)
    found = sized(planner(*nodes, *pinned), survival=survival)
    question = SizeQuestion(2, 0, 1.0, survival, 0.0, 5, False, ())
    findings = size_answer(question, found, "dump.yaml", ()).to_json()["findings"]
    assert "Today's nodes also survive the loss of any zone apart from these pods." in findings


def test_all_pods_run_after_the_loss_of_any_node(planner, make):
    made = planner(*map(make.node, ("a", "b", "c")), *deployment(make, "web", ["a"] * 4))
    assert len(sized(made, survival=Survival(nodes=1)).nodes) == 2
    made = planner(*map(make.node, ("a", "b", "c")), *deployment(make, "web", ["a"] * 4))
    assert len(sized(made, survival=Survival(nodes=2)).nodes) == 3


@pytest.mark.parametrize(
    ("pods", "large", "survival", "types"),
    [
        pytest.param(12, 1.7, Survival(nodes=1), {"small": 4}, id="two large nodes cost 3.4 + 1.7"),
        pytest.param(12, 3.1, NO_FAILURE, {"small": 3}, id="one large node has room for 16 pods"),
        pytest.param(
            8,
            1.7,
            Survival(zones=True, nodes=1),
            {"small": 3},
            id="a zone and a node do not fail both",
        ),
    ],
)
def test_no_set_of_one_type_is_cheaper(planner, make, pods, large, survival, types):
    """The first set of nodes has large nodes, which cost less per core."""
    nodes = [make.node(zone, cpu="64", **{ZONE: zone}) for zone in ("a", "b", "c")]
    made = planner(*nodes, *deployment(make, "web", ["a"] * pods))
    cores = 16 if large > 2 else 8
    large = stated("large", str(cores), f"{4 * cores}Gi", large)
    found = sized(made, types=(SMALL, large), survival=survival)
    assert fleet(found) == types
    assert found.survives


def test_a_kept_node_whose_taints_keep_off_all_other_pods_can_fail(planner, make):
    """A node of the control plane, whose pods need the room of a new node after the failure."""
    nodes = [make.node("cp"), make.node("w", cpu="8")]
    nodes[0]["spec"] = {"taints": [{"key": "control-plane", "effect": "NoSchedule"}]}
    dns = deployment(make, "dns", ["cp"], cpu="3")
    web = deployment(make, "web", ["w"] * 4, cpu="2")
    made = planner(*nodes, *dns, *web)
    found = sized(made, keep=["cp"], types=(SMALL,), survival=Survival(nodes=1))
    assert found.survives


def test_the_name_of_a_pool_has_no_deprecated_label(planner, make):
    """The controller manager copies kubernetes.io/arch to beta.kubernetes.io/arch."""
    arch, beta = "kubernetes.io/arch", "beta.kubernetes.io/arch"
    nodes = [make.node(f"n-{one}", **{arch: one, beta: one}) for one in ("amd64", "arm64")]
    pods = [
        one
        for name in ("amd64", "arm64")
        for one in deployment(make, name, [f"n-{name}"], nodeSelector={arch: name})
    ]
    found = sized(planner(*nodes, *pods))
    assert {one.pool for one in found.nodes.values()} == {f"{arch}=amd64", f"{arch}=arm64"}


def test_groups_of_one_pool_are_named_by_their_difference(planner, make):
    """Labels in which the NodePool of Karpenter differs from another pool are not in the names."""
    arch, karpenter = "kubernetes.io/arch", "karpenter.sh/nodepool"
    own = {karpenter: "default", "karpenter.sh/registered": "true"}
    nodes = [make.node(f"n-{one}", **own, **{arch: one}) for one in ("amd64", "arm64")]
    nodes.append(make.node("n-eks", **{"eks.amazonaws.com/nodegroup": "system", arch: "amd64"}))
    pods = [
        one
        for name, selector in (
            ("amd64", {arch: "amd64", karpenter: "default"}),
            ("arm64", {arch: "arm64"}),
            ("eks", {"eks.amazonaws.com/nodegroup": "system"}),
        )
        for one in deployment(make, name, [f"n-{name}"], nodeSelector=selector)
    ]
    found = sized(planner(*nodes, *pods))
    assert {one.pool for one in found.nodes.values()} == {
        f"{karpenter}=default,{arch}=amd64",
        f"{karpenter}=default,{arch}=arm64",
        "eks.amazonaws.com/nodegroup=system",
    }


def test_nodes_of_one_type_are_tried_for_each_pool(planner, make):
    """Only a large node has room for the pod of the pool db; the pool web is cheaper without."""
    nodes = [make.node("w", cpu="64", pool="web"), make.node("d", cpu="64", pool="db")]
    web = deployment(make, "web", ["w"] * 12, nodeSelector={"pool": "web"})
    db = deployment(make, "db", ["d"], cpu="6", nodeSelector={"pool": "db"})
    types = (SMALL, stated("large", "8", "32Gi", 1.7))
    found = sized(planner(*nodes, *web, *db), types=types, survival=Survival(nodes=1))
    assert fleet(found) == {"small": 4, "large": 2}


def two_pools(make):
    """Three nodes of the pool web, and one of the pool db with a pod of six cores."""
    zones = ("z1", "z1", "z2")
    nodes = [make.node(f"w{at}", pool="web", **{ZONE: zone}) for at, zone in enumerate(zones)]
    nodes.append(make.node("d", cpu="8", pool="db", **{ZONE: "z2"}))
    web = deployment(make, "web", ["w0", "w0", "w1", "w1", "w2"], nodeSelector={"pool": "web"})
    return [*nodes, *web, *deployment(make, "db", ["d"], cpu="6", nodeSelector={"pool": "db"})]


@pytest.mark.parametrize("count", [2, 3])
def test_all_pods_run_after_the_loss_of_any_n_nodes_of_small_pools(planner, make, count):
    """To lose any N nodes, each pool needs N nodes more than its pods fill."""
    found = sized(planner(*two_pools(make)), survival=Survival(nodes=count), effort=1)
    pools = [offer.pool for offer in found.nodes.values()]
    assert pools.count("pool=db") >= count + 1
    assert pools.count("pool=web") >= count + 2
    assert found.survives
    assert found.sets_covered == found.sets == comb(len(pools), count)


def test_untried_sets_of_nodes_are_named_in_the_verdict(planner, make, monkeypatch):
    monkeypatch.setattr(node_set, "SETS_MAX", 5)
    survival = Survival(nodes=2)
    found = sized(planner(*two_pools(make)), survival=survival)
    assert found.sets_covered < found.sets == comb(len(found.nodes), 2)
    question = SizeQuestion(4, 0, 1.0, survival, 0.0, 5, False, ())
    answer = size_answer(question, found, "dump.yaml", ()).to_json()
    tried = f"({found.sets_covered} of {found.sets} sets)"
    assert answer["verdict"].endswith(
        f", even after the loss of any 2 nodes, as far as tried {tried} (today 4)."
    )
    assert (
        "Not every set of 2 nodes was tried, only those of the fullest and the largest nodes, "
        "overall and in each pool and zone. The loss of another set may leave pods without a node."
    ) in answer["findings"]


@pytest.mark.parametrize(("count", "pods"), [(0, None), (1, "1 pod"), (1200, "1,200 pods")])
def test_pods_that_find_no_node_if_all_are_created_at_once_are_counted(count, pods):
    question = SizeQuestion(4, 0, 1.0, Survival(), 0.0, 5, False, ())
    answer = size_answer(question, SizeResult(waiting_at_once=count), "dump.yaml", ()).to_json()
    said = [one for one in answer["findings"] if "at the same time, " in one]
    assert [f"same time, {pods} would stay pending" in one for one in said] == [True] * bool(pods)
    assert all(one.startswith("Everything runs if the large pods are placed first") for one in said)


def test_the_answer_does_not_say_that_everything_runs_if_a_pod_fits_no_node():
    question = SizeQuestion(4, 0, 1.0, Survival(), 0.0, 5, False, ())
    found = SizeResult(waiting_at_once=2, unplaceable={"default/huge": "Insufficient cpu"})
    said = size_answer(question, found, "dump.yaml", ()).findings
    start = "The other pods run if the large pods are placed first. If all pods were created at "
    assert any(one.startswith(f"{start}the same time, 2 more pods would stay") for one in said)


def test_no_survival_is_claimed_that_no_check_confirmed(planner, make, monkeypatch):
    monkeypatch.setattr(SizeSearch, "_survives", lambda search: False)
    survival = Survival(nodes=1)
    found = sized(planner(*two_pools(make)), survival=survival)
    question = SizeQuestion(4, 0, 1.0, survival, 0.0, 5, False, ())
    answer = size_answer(question, found, "dump.yaml", ()).to_json()
    assert "without" not in answer["verdict"]
    assert "No nodes were found whose pods survive all failures of --survive." in answer["findings"]
    today = "Today's nodes do not survive the loss of d: 1 pod stays pending, of deploy/default/db."
    assert today in answer["findings"]


def test_the_verdict_excludes_pods_that_cannot_survive(planner, make):
    nodes = [make.node("a", **{ZONE: "z1"}), make.node("b", **{ZONE: "z2"})]
    pinned = deployment(make, "db", ["a"], nodeSelector={ZONE: "z1"})
    survival = Survival(zones=True)
    found = sized(planner(*nodes, *pinned), survival=survival)
    question = SizeQuestion(2, 0, 1.0, survival, 0.0, 5, False, ())
    verdict = size_answer(question, found, "dump.yaml", ()).to_json()["verdict"]
    assert verdict == (
        "1 node runs everything, and all but 1 pod even after the loss of any zone (today 2)."
    )


@pytest.mark.parametrize(
    ("selector", "also"),
    [({}, "even"), ({ZONE: "z1"}, "and all but 2 pods even")],
    ids=["every other pod survives", "another pod does not survive"],
)
def test_the_verdict_names_the_failures_if_a_pod_fits_no_node(planner, make, selector, also):
    nodes = [make.node("a", **{ZONE: "z1"}), make.node("b", **{ZONE: "z2"})]
    objects = [*nodes, make.pod("huge", cpu="40"), *deployment(make, "db", ["a"])]
    objects[-1]["spec"]["nodeSelector"] = selector
    survival = Survival(zones=True)
    found = sized(planner(*objects), survival=survival)
    question = SizeQuestion(2, 0, 1.0, survival, 0.0, 5, False, ())
    verdict = size_answer(question, found, "dump.yaml", ()).to_json()["verdict"]
    assert f"all but 1 pod, {also} after the loss of any zone (today 2)." in verdict


def test_a_node_without_a_zone_gives_other_nodes_no_place_outside_the_zones(planner, make):
    """Nodes outside all zones would survive the failure of any zone."""
    nodes = [make.node("a", **{ZONE: "z1"}), make.node("b", **{ZONE: "z2"}), make.node("c")]
    made = planner(*nodes, *deployment(make, "web", ["a", "b", "c"]))
    found = sized(made, survival=Survival(zones=True))
    assert sorted(offer.zone for offer in found.nodes.values()) == ["z1", "z2"]


def test_a_pool_without_zones_keeps_none_and_is_named(planner, make):
    nodes = [make.node("a", **{ZONE: "z1"}), make.node("b", **{ZONE: "z2"})]
    nodes.append(make.node("c", site="here"))
    pods = deployment(make, "web", ["c", "c"], nodeSelector={"site": "here"})
    survival = Survival(zones=True)
    found = sized(planner(*nodes, *pods), survival=survival)
    assert [offer.zone for offer in found.nodes.values()] == [""]
    assert found.bound.cost <= found.cost
    question = SizeQuestion(3, 0, 1.0, survival, 0.0, 5, False, ())
    findings = size_answer(question, found, "dump.yaml", ()).to_json()["findings"]
    assert any(
        one.startswith("1 of the new nodes is in no zone, because today") for one in findings
    )


def test_pods_that_cannot_leave_their_zone_are_named(planner, make):
    nodes = [make.node("a", **{ZONE: "z1"}), make.node("b", **{ZONE: "z2"})]
    pinned = deployment(make, "db", ["a"], nodeSelector={ZONE: "z1"})
    found = sized(planner(*nodes, *pinned), survival=Survival(zones=True))
    assert found.pinned == {
        ("default/db-1-0", "zone z1"): "node(s) didn't match Pod's node affinity/selector"
    }


def test_a_pod_that_survives_neither_its_zone_nor_its_node_ends_the_search(planner, make):
    """It is named for both failures, and all other pods survive."""
    nodes = [make.node("a", **{ZONE: "z1"}), make.node("b", **{ZONE: "z2"})]
    alone = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "db"}}}
            ]
        }
    }
    objects = [*nodes, *deployment(make, "db", ["a", "b"], affinity=alone)]
    found = sized(planner(*objects), survival=Survival(zones=True, nodes=1))
    assert {failure for _, failure in found.pinned} >= {"zone z1", "zone z2"}


def in_three_zones(make, **fields):
    """Three nodes in three zones with two pods each, which are spread over the zones."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    nodes = [make.node(f"n{zone}", **{ZONE: zone}) for zone in ("z1", "z2", "z3")]
    spec = {"topologySpreadConstraints": [constraint | fields]}
    return [*nodes, *deployment(make, "web", ["nz1", "nz2", "nz3"] * 2, **spec)]


def test_pods_that_a_constraint_holds_while_failed_nodes_exist_are_named(planner, snapshot, make):
    """They stay pending in a simulation of the failure, too."""
    survival = Survival(zones=True)
    found = sized(planner(*in_three_zones(make)), survival=survival)
    assert sorted(offer.zone for offer in found.nodes.values()) == ["z1", "z2", "z3"]
    assert found.survives
    for zone in ("z1", "z2", "z3"):
        failed = ClusterChange(failures=Failures(fail_zone=(zone,)))
        simulated = what_if(snapshot(*in_three_zones(make)), failed).difference.pending
        assert len(simulated) == sum(failure == f"zone {zone}" for _, failure in found.held) == 2
    question = SizeQuestion(3, 0, 1.0, survival, 0.0, 5, False, ())
    answer = size_answer(question, found, "dump.yaml", ()).to_json()
    assert answer["verdict"] == (
        "3 nodes run everything, even after the loss of any zone, once the Node objects of failed "
        "nodes are deleted (today 3)."
    )
    assert (
        "Up to 2 pods stay pending while the Node objects of failed nodes exist, although other "
        "nodes have room. The failed nodes still count for the topology spread of "
        f"deploy/default/web ({ZONE}, maxSkew 1, DoNotSchedule). With nodeTaintsPolicy: Honor, "
        "they do not count."
    ) in answer["findings"]


@pytest.mark.parametrize(
    "fields", [{"nodeTaintsPolicy": "Honor"}, {"whenUnsatisfiable": "ScheduleAnyway"}]
)
def test_no_pod_is_held_if_failed_nodes_do_not_count(planner, snapshot, make, fields):
    found = sized(planner(*in_three_zones(make, **fields)), survival=Survival(zones=True))
    assert (found.survives, found.held) == (True, {})
    failed = ClusterChange(failures=Failures(fail_zone=("z1",)))
    assert not what_if(snapshot(*in_three_zones(make, **fields)), failed).difference.pending


def test_each_zone_fails_with_the_nodes_added_for_the_previous_zone(planner, make):
    """The loss of z1 adds a GPU node in z2. If it survived the loss of z2, web would use it."""
    zones = ("z1", "z2", "z3")
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    nodes = [make.node(f"w-{zone}", pool="web", **{ZONE: zone}) for zone in zones]
    gpus = [make.node(f"g-{zone}", pool="gpu", **{ZONE: zone}) for zone in zones[:2]]
    for node in gpus:
        node["spec"] = {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}
    selects = {"nodeSelector": {"pool": "gpu"}, "tolerations": [{"operator": "Exists"}]}
    objects = [
        *deployment(
            make, "web", [f"w-{zone}" for zone in zones * 2], topologySpreadConstraints=[spread]
        ),
        *deployment(make, "train", ["g-z1"], **selects),
    ]
    found = sized(
        planner(*nodes, *gpus, *objects),
        survival=Survival(zones=True),
        keep=("w-z1", "w-z2", "w-z3"),
    )
    assert (found.survives, found.pinned) == (True, {})


def test_headroom_is_kept_free_on_each_node(planner, make):
    """With a quarter free a node of four cores takes three."""
    made = planner(*map(make.node, ("a", "b")), *deployment(make, "web", ["a"] * 4))
    assert len(sized(made, headroom=0.25).nodes) == 2


def test_kept_nodes_keep_their_pods_and_offer_their_free_resources(planner, make):
    """The kept node has one core free, which the second workload uses before a new node."""
    made = planner(
        make.node("gpu", pool="gpu"),
        make.node("a"),
        *deployment(make, "train", ["gpu"] * 3),
        *deployment(make, "web", ["a"]),
    )
    found = sized(made, keep=("gpu",))
    assert found.nodes == {}
    assert len(made.model.node("gpu").pods) == 4


def test_a_new_node_does_not_replace_a_kept_node_of_its_name(planner, make):
    """The size may have been applied before, with the names that it gives new nodes."""
    kept = [f"new-{number}" for number in range(1, 21)]
    nodes = [make.node("a"), *(make.node(name, cpu="100m") for name in kept)]
    found = sized(planner(*nodes, *deployment(make, "web", ["a"])), keep=kept)
    assert len(found.nodes) == 1
    assert not found.nodes.keys() & set(kept)


def test_a_kept_node_that_no_pod_tolerates_does_not_lower_the_bound(planner, make):
    """A virtual node states thousands of cores, but ordinary pods cannot use them."""
    virtual = make.node("v", cpu="10k")
    virtual["spec"] = {"taints": [{"key": "virtual-kubelet.io/provider", "effect": "NoSchedule"}]}
    made = planner(virtual, make.node("a"), *deployment(make, "web", ["a"] * 4))
    found = sized(made, keep=("v",))
    assert len(found.nodes) == 1
    assert found.bound.cost == pytest.approx(found.cost)


def test_pools_are_distinguished_by_their_labels(planner, make):
    made = planner(
        make.node("a", pool="x"),
        make.node("b", pool="y"),
        *deployment(make, "one", ["a"], nodeSelector={"pool": "x"}),
        *deployment(make, "two", ["b"], nodeSelector={"pool": "y"}),
    )
    assert sorted(offer.pool for offer in sized(made).nodes.values()) == ["pool=x", "pool=y"]


@pytest.mark.parametrize("kept", [(), ("a",)], ids=["none kept", "a kept"])
def test_pods_fit_beside_nodes_that_only_topology_spread_counts(planner, make, kept):
    """No pod of web fits the node of batch, but hostname spread counts it as a domain without pods.

    So each node takes one pod of web at most, although two fit into the nodes of four cores.
    """
    spread = {
        "topologyKey": HOSTNAME,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    names = ("a", "b", "c")
    batch = make.node("d", pool="batch", **{HOSTNAME: "d"})
    batch["spec"] = {"taints": [{"key": "batch", "effect": "NoSchedule"}]}
    tolerated = {"tolerations": [{"key": "batch", "operator": "Exists"}]}
    objects = [
        *(make.node(name, pool="web", **{HOSTNAME: name}) for name in names),
        batch,
        *deployment(make, "web", names, cpu="1500m", topologySpreadConstraints=[spread]),
        *deployment(make, "batch", ["d"], nodeSelector={"pool": "batch"}, **tolerated),
    ]
    found = sized(planner(*objects), keep=kept)
    web = ["pool=web"] * (3 - len(kept))
    assert sorted(offer.pool for offer in found.nodes.values()) == ["pool=batch", *web]
    assert not found.waiting_at_once


def test_pools_of_several_providers_are_named_by_their_own_labels(planner, make):
    eks, karpenter = "eks.amazonaws.com/nodegroup", "karpenter.sh/nodepool"
    nodes = [make.node("a", **{eks: "web", "template": "1"}), make.node("b", **{karpenter: "web"})]
    pods = [
        *deployment(make, "one", ["a"], nodeSelector={eks: "web"}),
        *deployment(make, "two", ["b"], nodeSelector={karpenter: "web"}),
    ]
    found = sized(planner(*nodes, *pods)).nodes.values()
    assert sorted(offer.pool for offer in found) == [f"{eks}=web", f"{karpenter}=web"]


def test_pools_of_a_cloud_provider_are_named_by_its_label(planner, make):
    """A pool needs further labels in its name only if another pool has the same value."""
    key = "eks.amazonaws.com/nodegroup"
    nodes = [
        make.node("a", **{key: "web", "template": "1"}),
        make.node("b", **{key: "web", "template": "2"}),
        make.node("c", **{key: "db", "template": "1"}),
    ]
    model = planner(*nodes).model
    offers = node_offers(model, model.table.nodes(), (), 0.0)
    assert [offer.pool for offer in offers] == [
        f"{key}=db",
        f"{key}=web,template=1",
        f"{key}=web,template=2",
    ]


def test_a_pod_too_large_for_every_type_is_named(planner, make):
    made = planner(make.node("a", cpu="64"), *deployment(make, "big", ["a"], cpu="9"))
    found = sized(made, types=(SMALL, LARGE))
    assert list(found.unplaceable) == ["default/big-1-0"]


def test_the_search_ends_at_the_lower_bound(planner, make):
    """Four pods of one core on one node of four: nothing can be cheaper, so nothing is tried."""
    objects = [make.node("a"), *(make.pod(f"p{at}", node_name="a", owner="web") for at in range(4))]
    found = sized(planner(*objects), effort=1000)
    assert found.is_cheapest
    assert found.cycles < 100


ALL_TRIED = ". The search has tried all its changes, so a larger --effort gives the same answer"


@pytest.mark.parametrize(
    ("effort", "share", "more"),
    [
        (5, "78.5%", ALL_TRIED),
        (0, "73.3%", "; --effort 50 searches longer"),
    ],
    ids=["tried all", "used its cycles"],
)
def test_the_answer_says_whether_a_longer_search_can_help(planner, make, effort, share, more):
    """A large and a small node for 2.8 have room for three pods of three cores each."""
    objects = [make.node("a", cpu="16"), *deployment(make, "web", ["a"] * 3, cpu="3")]
    found = sized(planner(*objects), types=(SMALL, LARGE), effort=effort)
    assert found.tried_all_changes == bool(effort)
    question = SizeQuestion(1, 0, 4.0, NO_FAILURE, 0.0, 5, True, ())
    answer = size_answer(question, found, "dump.yaml", ()).to_json()
    bound = f"The cheapest possible set costs at least {share} of this set (proven)"
    assert f"{bound}{more}." in answer["findings"]


@pytest.mark.parametrize("seed", range(4))
def test_more_effort_is_never_worse_and_never_below_the_bound(planner, make, seed):
    pick = TieBreak(seed).pick
    objects = [make.node(f"n{number}", cpu="8") for number in range(6)]
    for number in range(5):
        nodes = [f"n{(number + at) % 6}" for at in range(1 + pick(5))]
        objects += deployment(make, f"w{number}", nodes, cpu=("700m", "1300m", "2")[pick(3)])
    costs = []
    for effort in (1, 4, 16):
        found = sized(planner(*objects), types=(SMALL, LARGE), effort=effort, seed=seed)
        costs.append(found.cost)
        assert found.bound.cost <= found.cost + 1e-9
        assert not found.unplaceable
    assert costs == sorted(costs, reverse=True)


def test_equal_seeds_give_equal_nodes(planner, make):
    objects = [*map(make.node, ("a", "b", "c")), *deployment(make, "web", ["a", "b", "c"] * 3)]
    assert fleet(sized(planner(*objects))) == fleet(sized(planner(*objects)))


@pytest.mark.parametrize(
    "survival", [NO_FAILURE, Survival(zones=True), Survival(nodes=1), Survival(nodes=2)]
)
@pytest.mark.parametrize(
    "types",
    [
        pytest.param((), id="present types"),
        pytest.param((SMALL, LARGE), id="stated types", marks=pytest.mark.long),
    ],
)
def test_equal_decisions_of_builds_are_made_once(planner, make, monkeypatch, survival, types):
    """The search finds the same nodes, in the same number of cycles, if it decides every time."""

    def search():
        made, decided = planner(*two_pools(make)), []
        schedule = made.model.schedule
        monkeypatch.setattr(
            made.model, "schedule", lambda pod: [decided.append(pod), schedule(pod)][1]
        )
        found = sized(made, types=types, survival=survival)
        made.model.table.validate()
        nodes = [(name, offer.title, offer.price) for name, offer in found.nodes.items()]
        places = {pod.key: made.model.cluster.node_of(pod) for pod in made.model.pods()}
        return (nodes, places, found.cycles, found.obstacles, found.tried), len(decided)

    found, decided = search()
    monkeypatch.setattr(ClusterModel, "repeats_decisions", False)
    again, decided_every_time = search()
    assert again == found
    assert decided < decided_every_time


class Phases(NoProgress):
    """The phases of a search, in order; `silent` are those that show no progress."""

    def __init__(self):
        self.begun = []
        self.silent = set()

    def begin(self, phase, total):
        self.begun.append(phase)
        self.silent.add(phase)

    def reach(self, done, now_s):
        if done:
            self.silent.discard(self.begun[-1])


def test_every_phase_shows_its_progress(planner, make):
    """Also those whose number of scheduling cycles is unknown."""
    names, phases = [f"n{number}" for number in range(4)], Phases()
    model = planner(*map(make.node, names), *deployment(make, "web", names * 3)).model
    replaced = list(model.table.nodes())
    offers = node_offers(model, replaced, (SMALL, LARGE), 0.0)
    SizeSearch(model, offers, Survival(nodes=1), phases).run(replaced, 5)
    assert {"trying nodes of one type", "placing all pods at once"} < set(phases.begun)
    assert phases.silent == set()


@pytest.mark.parametrize("count", range(2, 8))
def test_every_build_is_tried_if_decisions_may_differ(planner, make, monkeypatch, count):
    """These are copies of the present nodes, four builds, and the best of them again."""
    monkeypatch.setattr(ClusterModel, "repeats_decisions", False)
    names, phases = [f"n{number}" for number in range(count)], Phases()
    model = planner(*map(make.node, names), *deployment(make, "web", names * 3)).model
    replaced = list(model.table.nodes())
    offers = node_offers(model, replaced, (SMALL, LARGE), 0.0)
    SizeSearch(model, offers, Survival(zones=True), phases).run(replaced, 1)
    builds = phases.begun[1 : phases.begun.index("trying nodes of one type")]
    assert builds == ["building", "surviving failures"] * 6


def test_no_decision_of_a_build_is_reused_with_a_plugin_of_the_user(snapshot, make):
    config = SchedulerConfig(out_of_tree={"Mine": lambda handle, args: None})
    assert ClusterModel(snapshot(make.node("a")), SchedulerConfig()).repeats_decisions
    assert not ClusterModel(snapshot(make.node("a")), config).repeats_decisions


def test_the_bound_is_the_optimum_of_the_relaxed_problem():
    """Demand 10 and 40; kinds (4, 16) for 1.00 and (8, 16) for 1.50: ten cores cost 2.50."""
    found = cost_bound([10, 40], [[4, 16], [8, 16]], [1.0, 1.5])
    assert found.cost == pytest.approx(2.5)
    assert sum(found.shares) == pytest.approx(1)


def test_the_bound_mixes_kinds():
    """One kind has only cores, the other only memory: both are needed."""
    found = cost_bound([10, 10], [[10, 0], [0, 10]], [1.0, 2.0])
    assert found.cost == pytest.approx(3.0)
    assert found.shares == pytest.approx((1 / 3, 2 / 3))


def test_the_answer_states_nodes_cost_bound_and_limiting_resource(planner, make):
    made = planner(make.node("a", cpu="64"), *deployment(make, "web", ["a"] * 8))
    today = [price_of_node(info, (SMALL, LARGE)) for info in made.model.table.nodes()]
    question = SizeQuestion(1, 0, sum(today), NO_FAILURE, 0.0, 5, True, ())
    answer = size_answer(question, sized(made, types=(SMALL, LARGE)), "dump.yaml", ())
    assert "what determines the lower bound" in [table.title for table in answer.tables]
    found = answer.to_json()
    assert found["verdict"] == "1 node for 1.80 per hour runs everything (today 1 for 1.98)."
    assert found["findings"][0] == "That saves 134 per month."
    assert found["findings"][1] == "No set of these types is cheaper (proven)."
    assert found["fleet"][0]["type"] == "large"
    assert found["binds"][0]["resource"] == "cpu"


def test_the_answer_states_how_much_more_the_new_nodes_cost(planner, make):
    made = planner(make.node("a", cpu="64"), *deployment(make, "web", ["a"] * 8))
    question = SizeQuestion(1, 0, 0.8, NO_FAILURE, 0.0, 5, True, ())
    answer = size_answer(question, sized(made, types=(SMALL, LARGE)), "dump.yaml", ())
    assert answer.to_json()["findings"][0] == "That costs 730 more per month."


def test_the_answer_says_if_the_new_nodes_cost_the_same(planner, make):
    made = planner(make.node("a", cpu="64"), *deployment(make, "web", ["a"] * 8))
    question = SizeQuestion(1, 0, 1.8, NO_FAILURE, 0.0, 5, True, ())
    answer = size_answer(question, sized(made, types=(SMALL, LARGE)), "dump.yaml", ())
    assert answer.to_json()["findings"][0] == "The cost per month stays the same."


@pytest.mark.parametrize(("pods", "words"), [(1, "The pod fits no"), (2, "None of 2 pods fits a")])
def test_nodes_that_run_fewer_pods_than_today_save_nothing(planner, make, pods, words):
    made = planner(make.node("a", cpu="64"), *deployment(make, "web", ["a"] * pods, cpu="20"))
    question = SizeQuestion(1, 0, 0.8, NO_FAILURE, 0.0, 5, True, ())
    found = size_answer(question, sized(made, types=(SMALL,)), "dump.yaml", ()).to_json()
    assert found["verdict"] == f"{words} new node on offer (today 1 for 0.80)."
    assert not any("per month" in one for one in found["findings"])


def test_types_with_estimated_prices_are_named(planner, make):
    made = planner(make.node("a", cpu="64"), *deployment(make, "web", ["a"] * 8))
    unpriced = StatedType("large", LARGE.capacity)
    replaced, types = list(made.model.table.nodes()), (SMALL, unpriced)
    names = estimated_types(replaced, node_offers(made.model, replaced, types, 0.0), types)
    assert names == ["large"]
    question = SizeQuestion(1, 0, 1.0, NO_FAILURE, 0.0, 5, True, names)
    found = size_answer(question, sized(made, types=types), "dump.yaml", ()).to_json()
    assert found["estimated_prices"] == ["large"]
    assert found["findings"][1] == (
        "Estimated from cores and memory, because --instance-types states no price: large."
    )


def test_nodes_without_an_instance_type_are_named_if_their_cost_is_estimated(planner, make):
    made = planner(make.node("a", cpu="64"), *deployment(make, "web", ["a"] * 8))
    question = SizeQuestion(1, 0, 1.0, NO_FAILURE, 0.0, 5, True, (), untyped=["a"])
    found = size_answer(question, sized(made, types=(SMALL,)), "dump.yaml", ()).to_json()
    assert found["findings"][1] == (
        "The cost of today's nodes without an instance type is estimated from cores and memory: a."
    )


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [(("on-demand", "spot"), {"large"}), (("on-demand",), {"small", "large"})],
    ids=["the file offers spot", "the file says nothing about spot"],
)
def test_spot_nodes_have_types_that_are_offered_as_spot(planner, make, kinds, expected):
    model = planner(make.node("a", **{"karpenter.sh/capacity-type": "spot"})).model
    types = [SMALL, replace(LARGE, capacity_types=kinds)]
    offers = node_offers(model, list(model.table.nodes()), types, 0.0)
    assert {one.node_type for one in offers} == expected


def test_assumed_spot_prices_of_old_and_new_nodes_are_noted(planner, make):
    spot = {"eks.amazonaws.com/capacityType": "SPOT"}
    old = make.node("a", **spot, **{INSTANCE_TYPE: "large"})
    model = planner(old, make.node("b")).model
    infos = list(model.table.nodes())
    [note] = spot_notes(infos, node_offers(model, infos, [SMALL], 0.0), [SMALL, LARGE])
    assert note.startswith("--instance-types states no spot price of large, small.")
    assert spot_notes(infos[1:], (), [SMALL, LARGE]) == ()


def test_new_nodes_have_the_labels_of_their_type(planner, make):
    """Pods that select nodes with 8 cores need the larger type, which no node has today."""
    cpus = "karpenter.k8s.aws/instance-cpu"
    node = make.node("a", **{INSTANCE_TYPE: "m6i.xlarge", cpus: "4"})
    pods = deployment(make, "web", ["", "a"], nodeSelector={cpus: "8"})
    types = [stated("m6i.xlarge", "4", "16Gi", 0.2), stated("m6i.2xlarge", "8", "32Gi", 0.3)]
    types[1] = replace(types[1], labels={"disk": "nvme"})
    found = sized(planner(node, *pods), types=types)
    [offer] = found.nodes.values()
    labels = offer.node("new").node.metadata.labels
    assert (labels[INSTANCE_TYPE], labels[cpus], labels["disk"]) == ("m6i.2xlarge", "8", "nvme")


def test_nodes_of_a_node_pool_meet_its_requirements(planner, make):
    """A type without a known category is assumed to meet the requirement.

    A node that stays shows the category of its type.
    """
    category = "karpenter.k8s.aws/instance-category"
    nodes = [
        make.node(
            name, **{ZONE: zone, NODE_POOL: "mem", category: "r", INSTANCE_TYPE: "r6i.xlarge"}
        )
        for name, zone in (("a", "z1"), ("b", "z2"))
    ]
    spec = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": [
            {"key": category, "operator": "In", "values": ["r"]},
            {"key": ZONE, "operator": "NotIn", "values": ["z2"]},
        ],
    }
    value = {"metadata": {"name": "mem"}, "spec": {"template": {"spec": spec}}}
    pools = [decode_as(NodePool, value)]
    types = [stated(name, "4", "16Gi", 0.2) for name in ("r6i.xlarge", "m6i.xlarge", "other")]
    model = planner(*nodes).model
    infos = model.table.nodes()
    found = node_offers(model, infos, types, 0.0, pools)
    assert {(one.node_type, one.zone) for one in found} == {("r6i.xlarge", "z1"), ("other", "z1")}
    assert {one.zone for one in node_offers(model, infos, (), 0.0, pools)} == {"z1"}
    [note] = assumption_notes(model, infos, types, pools)
    assert note.startswith(
        f"NodePool mem requires the label {category}, but its value is not known"
    )
    kept = make.node("kept", **{category: "x", INSTANCE_TYPE: "other"})
    model = planner(*nodes, kept).model
    infos = [model.node(name) for name in "ab"]
    found = node_offers(model, infos, types, 0.0, pools)
    assert {one.node_type for one in found} == {"r6i.xlarge"}
    assert assumption_notes(model, infos, types, pools) == ()


def test_a_pool_has_only_types_of_its_operating_system(planner, make):
    """A type without a stated operating system can be in any pool."""
    nodes = [make.node("a"), make.node("b", **{OS: "windows"})]
    types = [SMALL, *(StatedType(one, SMALL.capacity, systems=(one,)) for one in SYSTEMS)]
    model = planner(*nodes).model
    found = {
        (one.pool, one.node_type) for one in node_offers(model, model.table.nodes(), types, 0.0)
    }
    windows = f"{OS}=windows"
    assert found == {("", "small"), ("", "linux"), (windows, "small"), (windows, "windows")}


def test_a_zone_without_a_ready_node_gets_no_new_nodes(planner, make):
    """A node without a Ready condition counts as Ready. If no zone is left, all zones count."""
    nodes = [make.node(name, **{ZONE: zone}) for name, zone in (("a", "z1"), ("b", "z2"))]
    for node, status in zip(nodes, ("Unknown", "True"), strict=True):
        node["status"]["conditions"] = [{"type": "Ready", "status": status}]
    model = planner(*nodes).model
    infos = model.table.nodes()
    assert {one.zone for one in node_offers(model, infos, (), 0.0)} == {"z2"}
    assert failed_zone_notes(infos) == (
        "Zone z1 gets no new nodes, because no node is Ready there.",
    )
    model = planner(nodes[0]).model
    assert {one.zone for one in node_offers(model, model.table.nodes(), (), 0.0)} == {"z1"}


@pytest.mark.parametrize(("selector", "is_said"), [({}, True), ({"pool": "own"}, False)])
def test_the_answer_says_that_a_larger_share_of_nodes_are_spot_nodes(
    planner, make, selector, is_said
):
    """With the selector, both nodes are needed, as today."""
    key, value = "eks.amazonaws.com/capacityType", "SPOT"
    nodes = [make.node("a", cpu="2", pool="own"), make.node("b", cpu="4", **{key: value})]
    pods = deployment(make, "own", ["a", "a"], nodeSelector=selector)
    found = sized(planner(*nodes, *pods, *deployment(make, "web", ["b", "b"])))
    spot = (f"{key}={value}",)
    question = SizeQuestion(2, 0, 1.0, NO_FAILURE, 0.0, 5, False, (), spot=spot)
    findings = size_answer(question, found, "dump.yaml", ()).to_json()["findings"]
    says = (
        "1 of 1 new node is a spot node (today 1 of 2), because no rule keeps their pods off spot "
        f"nodes. --keep {key}={value} keeps"
    )
    assert any(one.startswith(says) for one in findings) == is_said


def test_nodes_of_one_type_and_of_different_sizes_have_rows_of_their_own(planner, make):
    """k3s labels all nodes with the type k3s. Kubelets report slightly different memory sizes."""
    nodes = [make.node(name, cpu=cpu) for name, cpu in (("a", "4"), ("b", "8"), ("c", "8"))]
    for node in nodes:
        node["metadata"]["labels"][INSTANCE_TYPE] = "k3s"
    nodes[2]["status"]["allocatable"]["memory"] = "16700000Ki"
    pods = [*deployment(make, "large", ["b"], cpu="8"), *deployment(make, "small", ["a"], cpu="1")]
    found = sized(planner(*nodes, *pods))
    question = SizeQuestion(3, 0, 1.0, NO_FAILURE, 0.0, 5, False, ())
    rows = size_answer(question, found, "dump.yaml", ()).to_json()["fleet"]
    assert [(row["type"], row["size"], row["nodes"]) for row in rows] == [
        ("k3s", "4/16Gi", 1), ("k3s", "8/16Gi", 1),
    ]  # fmt: skip


@pytest.mark.parametrize("node_type", ["m5.large", ""])
def test_nodes_of_one_type_and_of_different_numbers_of_pods_have_rows_of_their_own(
    planner, make, node_type
):
    """The nodes of EKS that were created before prefix delegation take fewer pods."""
    nodes = [make.node("a"), make.node("b")]
    nodes[1]["status"]["allocatable"]["pods"] = "29"
    for node in nodes if node_type else ():
        node["metadata"]["labels"][INSTANCE_TYPE] = node_type
    pods = deployment(make, "web", ["a"] * 4 + ["b"] * 4)
    found = sized(planner(*nodes, *pods))
    question = SizeQuestion(2, 0, 1.0, NO_FAILURE, 0.0, 5, False, ())
    rows = size_answer(question, found, "dump.yaml", ()).to_json()["fleet"]
    assert [(row["size"], row["nodes"]) for row in rows] == [("110 pods", 1), ("29 pods", 1)]


def test_a_type_that_only_another_pool_has_is_not_called_absent(planner, make):
    """The reservation of a new node is derived from the nodes of its own pool only."""
    nodes = [make.node("a", cpu="4"), make.node("b", cpu="8")]
    for node, kind in zip(nodes, ("m", "large"), strict=True):
        node["metadata"]["labels"] |= {INSTANCE_TYPE: kind, "pool": kind}
        node["status"]["capacity"] = node["status"]["allocatable"] | {"memory": "64Gi"}
    model = planner(*nodes).model
    types = [LARGE, stated("tiny", "2", "8Gi", 0.1)]
    *_, note = assumption_notes(model, model.table.nodes(), types)
    assert "There is no node of tiny. In some pools, there is no node of large. New" in note


def test_a_type_of_which_the_reservation_leaves_nothing_is_not_offered(planner, make):
    """A node of 16Gi reserves 8Gi, so nothing is left of a machine with 8Gi."""
    node = make.node("a", cpu="4")
    node["metadata"]["labels"][INSTANCE_TYPE] = "m"
    node["status"]["capacity"] = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    node["status"]["allocatable"]["memory"] = "8Gi"
    model = planner(node).model
    infos = model.table.nodes()
    types = [LARGE, stated("tiny", "2", "8Gi", 0.1)]
    offers = node_offers(model, infos, types, 0.0)
    assert [one.node_type for one in offers] == ["large"]
    [note] = assumption_notes(model, infos, types)
    assert "There is no node of large, tiny." in note
    assert "system: 8,192Mi memory as on a (m), or the same share if that is more." in note
    assert "This leaves nothing of tiny for pods." in note


@pytest.mark.parametrize(
    ("texts", "survival"),
    [((), Survival()), (("zone",), Survival(zones=True)), (("node",), Survival(nodes=1)),
     (("zone", "nodes=3"), Survival(zones=True, nodes=3))],
)  # fmt: skip
def test_failures_are_parsed(texts, survival):
    assert parse_survival(texts) == survival


@pytest.mark.parametrize(
    "text",
    ["nodes=0", "nodes=x", "rack", "nodes", "nodes=\N{ARABIC-INDIC DIGIT THREE}",
     pytest.param("nodes=" + "9" * 5000, id="5000 digits")],
)  # fmt: skip
def test_an_unknown_failure_is_refused(text):
    with pytest.raises(InputError, match="is not zone, node or nodes=N"):
        parse_survival((text,))


@pytest.mark.parametrize(
    ("texts", "what"),
    [
        (("zone", "zone"), "zone"),
        (("node", "node"), "nodes"),
        (("nodes=2", "nodes=3"), "nodes"),
        (("nodes=2", "node"), "nodes"),
        (("zone", "node", "nodes=2"), "nodes"),
    ],
)
def test_a_failure_that_is_named_twice_is_refused(texts, what):
    with pytest.raises(InputError, match=f"--survive: names {what} twice"):
        parse_survival(texts)


@pytest.mark.parametrize(("count", "nodes"), [(10, 1), (12, 12)])
def test_as_many_failures_as_nodes_are_accepted(count, nodes):
    check_survival(Survival(nodes=count), [""] * nodes)


@pytest.mark.parametrize(("count", "nodes"), [(11, 1), (13, 12)])
def test_more_failures_than_nodes_are_refused(count, nodes):
    with pytest.raises(InputError, match=f"nodes={count} is more than"):
        check_survival(Survival(nodes=count), [""] * nodes)


@pytest.mark.parametrize(("text", "share"), [("", 0.0), ("20%", 0.2), ("0.5", 0.5)])
def test_a_share_is_parsed(text, share):
    assert parse_headroom(text) == share


@pytest.mark.parametrize("text", ["-1%", "95%", "much", "nan"])
def test_an_impossible_share_is_refused(text):
    with pytest.raises(InputError, match="is not a share from 0 to 90%"):
        parse_headroom(text)


def test_pods_without_a_node_do_not_raise_the_bound(planner, make):
    """A pod of 90 cores fits no type; the limit is about the four cores that are placed."""
    made = planner(
        make.node("a", cpu="128"),
        *deployment(make, "big", ["a"], cpu="90"),
        *deployment(make, "web", ["a"] * 4),
    )
    found = sized(made, types=(SMALL, LARGE))
    assert found.bound.cost == pytest.approx(found.cost)


def test_a_pod_without_a_place_has_the_reasons_of_offered_and_kept_nodes(planner, make):
    """The kept node refuses the pod for its taint, and every new node is too small."""
    kept = make.node("kept")
    kept["spec"] = {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}
    found = sized(planner(kept, make.node("a"), make.pod("p", cpu="40")), keep=("kept",))
    largest = "no node is large enough; the largest has 4 cpu"
    reasons = f"Insufficient cpu, node(s) had untolerated taint(s) ({largest})"
    assert (found.nodes, found.unplaceable) == ({}, {"default/p": reasons})


def test_pods_that_cannot_survive_do_not_raise_the_bound(planner, make):
    """The zone's pods have no other place, so the failure of the zone needs no second node."""
    nodes = [make.node("a", **{ZONE: "z1"}), make.node("b", **{ZONE: "z2"})]
    tied = deployment(make, "db", ["a"] * 4, nodeSelector={ZONE: "z1"})
    found = sized(planner(*nodes, *tied), survival=Survival(zones=True))
    assert found.bound.cost <= found.cost + 1e-9


def test_a_new_node_is_ready_even_if_its_template_node_is_not(planner, make):
    node = make.node("a")
    node["spec"] = {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}
    found = sized(planner(node, *deployment(make, "web", ["a"])))
    assert (len(found.nodes), found.unplaceable) == (1, {})


def test_pools_with_equal_labels_are_distinguished_by_taints(planner, make):
    tainted = make.node("a", pool="x")
    tainted["spec"] = {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}
    nodes = [tainted, make.node("b", pool="x"), make.node("c", pool="y")]
    found = sized(planner(*nodes, *deployment(make, "web", ["b"], nodeSelector={"pool": "x"})))
    assert (len(found.nodes), found.unplaceable) == (1, {})


@pytest.mark.parametrize("sample", [{}, {ZONE: "z1"}, {ZONE: "z2"}])
def test_new_nodes_are_in_the_zone_of_their_offer(planner, make, sample):
    """Offers are made in each zone, and outside of zones for a pool without zones."""
    nodes = [make.node("a"), make.node("b", **{ZONE: "z1"}), make.node("c", **sample)]
    nodes.append(make.node("d", pool="outside"))
    model = planner(*nodes).model
    offers = node_offers(model, model.table.nodes(), (), 0.0)
    assert {offer.zone for offer in offers if not offer.pool} == {"z1", *sample.values()}
    assert [offer.zone for offer in offers if offer.pool] == [""]
    for offer in offers:
        assert offer.node("new").node.metadata.labels.get(ZONE, "") == offer.zone


@pytest.mark.parametrize("driver", ["topology.disk.csi.azure.com/zone", "topology.gke.io/zone"])
def test_new_nodes_have_their_zone_in_the_label_of_the_volume_driver(planner, make, driver):
    """Two pods that need different zones by the label of the driver get a node in each zone."""
    zones = ("z1", "z2")
    nodes = [make.node(zone, **{ZONE: zone, driver: zone}) for zone in zones]
    pods = [
        one
        for zone in zones
        for one in deployment(make, f"db-{zone}", [zone], nodeSelector={driver: zone})
    ]
    offers = sized(planner(*nodes, *pods)).nodes.values()
    assert sorted((one.zone, one.node("new").node.metadata.labels[driver]) for one in offers) == [
        ("z1", "z1"),
        ("z2", "z2"),
    ]


def test_an_empty_zone_label_of_a_volume_driver_stays_empty(planner, make):
    """Azure nodes without a zone have a fault domain as their zone, and an empty label."""
    driver = "topology.disk.csi.azure.com/zone"
    nodes = [make.node(name, **{ZONE: zone, driver: ""}) for name, zone in (("a", "0"), ("b", "1"))]
    found = sized(planner(*nodes, *deployment(make, "db", ["a"], nodeSelector={driver: ""})))
    assert len(found.nodes) == 1
    assert not found.unplaceable


def test_a_pod_is_not_tried_on_every_type_in_a_zone_without_its_volume(planner, make):
    """The volume is in the zone that fails, so no node in another zone takes the pod."""
    affinity = {"key": ZONE, "operator": "In", "values": ["z1"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [affinity]}]}
    ref = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data"}
    claim = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default", "uid": "c",
                     "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "v", "accessModes": ["ReadWriteOnce"], "storageClassName": "",
                 "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Bound"},
    }  # fmt: skip
    volume = {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v", "uid": "v"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                 "claimRef": {**ref, "uid": "c"}, "nodeAffinity": {"required": terms}},
        "status": {"phase": "Bound"},
    }  # fmt: skip
    data = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}
    nodes = [make.node("a", **{ZONE: "z1"}), make.node("b", **{ZONE: "z2"})]
    objects = [*nodes, claim, volume, *deployment(make, "db", ["a"], **data)]
    types = [stated(f"t{number}", "4", "16Gi", 1.0) for number in range(50)]
    found = sized(planner(*objects), types=types, survival=Survival(zones=True), effort=1)
    assert [failure for _, failure in found.pinned] == ["zone z1"]
    assert found.cycles < 50
