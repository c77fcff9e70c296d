"""Zones of new nodes and their kubelet settings, from the provider's node classes."""

from __future__ import annotations

import pytest

from fairlead.whatif.configuration.autoscaling.karpenter.config import karpenter_config

AWS = "karpenter.k8s.aws"


def pool(name, kind="EC2NodeClass", group=AWS):
    ref = {"group": group, "kind": kind, "name": name}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": f"pool-{name}"},
        "spec": {"template": {"spec": {"requirements": [], "nodeClassRef": ref}}},
    }


def node_class(name, *zones, subnets=None, **spec):
    return {
        "spec": spec,
        "apiVersion": f"{AWS}/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": name},
        "status": {
            "subnets": [{"id": z, "zone": z} for z in zones] if subnets is None else subnets
        },
    }


@pytest.fixture
def zones_and_notes(found, make, write):
    """Return the zones of the instance types for a cluster with a node in z-a, and the notes.

    `types` is the text of a file of instance types.
    """

    def read(*objects, types=None):
        labels = {
            "topology.kubernetes.io/zone": "z-a",
            "node.kubernetes.io/instance-type": "small",
        }
        file = None if types is None else str(write("types.csv", types))
        config, notes = karpenter_config("dump", found(make.node("n", **labels), *objects), file)
        [small] = config.types
        return sorted({one.zone for one in small.offerings}), notes

    return read


def test_zones_are_those_of_the_subnets(zones_and_notes):
    zones, notes = zones_and_notes(pool("default"), node_class("default", "z-b", "z-a", "z-b"))
    assert zones == ["z-a", "z-b"]
    says = "offered in the zones of the subnets of EC2NodeClass default: z-a, z-b."
    assert says in " ".join(notes)


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([pool("default")], id="not in the dump"),
        pytest.param([pool("default"), node_class("default")], id="no subnets yet"),
        pytest.param([pool("default"), node_class("default", subnets="x")], id="malformed"),
        pytest.param([pool("default"), node_class("other", "z-b")], id="another class"),
        pytest.param(
            [pool("p"), node_class("p", "z-b"), pool("q"), node_class("q", "z-c")], id="they differ"
        ),
        pytest.param([pool("a", "AKSNodeClass", "karpenter.azure.com")], id="Azure"),
    ],
)
def test_without_subnets_zones_are_those_of_the_nodes(zones_and_notes, objects):
    zones, notes = zones_and_notes(*objects)
    assert zones == ["z-a"]
    assert any(note.startswith("Nothing is read from ") for note in notes)


def test_the_node_class_of_a_local_cluster_needs_no_note(zones_and_notes):
    zones, notes = zones_and_notes(pool("default", "NodeClass", "fairlead.dev"))
    assert zones == ["z-a"]
    assert not any("NodeClass" in note for note in notes)


@pytest.mark.parametrize("subnets", [[], ["z-b"]], ids=["no subnets", "subnets"])
def test_types_with_zones_need_no_note_about_zones(zones_and_notes, subnets):
    """The note still says that nothing is read from the node class."""
    types = "name,cpu,memory,zones\nsmall,2,8Gi,z-c\n"
    zones, notes = zones_and_notes(pool("default"), node_class("default", *subnets), types=types)
    assert zones == ["z-c"]
    about = [note for note in notes if "NodeClass" in note]
    assert about == ["Nothing is read from EC2NodeClass default."]


TYPES = "name,cpu,memory{}\nsmall,2,8Gi{}\nlarge,16,64Gi{}\n"
BOTTLEROCKET = {"amiSelectorTerms": [{"alias": "bottlerocket@latest"}]}


@pytest.mark.parametrize(
    ("spec", "pods"),
    [
        ({}, None),
        ({"kubelet": {}}, None),
        ({"kubelet": {"maxPods": 30}}, (30, 30)),
        ({"kubelet": {"podsPerCore": 5}}, (10, 80)),
        ({"kubelet": {"podsPerCore": 50}}, (100, 110)),
        ({"kubelet": {"maxPods": 30, "podsPerCore": 5}}, (10, 30)),
        ({"kubelet": {"maxPods": 30, "podsPerCore": 5}, **BOTTLEROCKET}, (30, 30)),
        ({"kubelet": {"podsPerCore": 5}, "amiFamily": "Bottlerocket"}, None),
        ({"kubelet": {"podsPerCore": 0}}, None),
        ({"kubelet": {"maxPods": "many"}}, None),
    ],
)
def test_kubelet_settings_limit_the_pods_of_new_nodes(found, make, write, spec, pods):
    """Other node classes keep the number of the instance type or of the existing nodes."""
    objects = found(make.node("n"), pool("a"), node_class("a", **spec), pool("b"), node_class("b"))
    file = str(write("types.csv", TYPES.format("", "", "")))
    config, _ = karpenter_config("dump", objects, file)
    own = {
        ref.name: tuple((one.capacity["pods"], one.allocatable["pods"]) for one in types)
        for ref, types in config.class_types.items()
    }
    assert own == ({} if pods is None else {"a": tuple((one, one) for one in pods)})


@pytest.mark.parametrize(
    ("kubelet", "notes"),
    [
        (
            {"maxPods": 58, "podsPerCore": 10},
            ["Only limits of pods are read from EC2NodeClass a.",
             "New nodes of EC2NodeClass a have its limits of pods: maxPods 58 and podsPerCore 10."],
        ),
        (
            {"systemReserved": {"cpu": "1"}, "evictionHard": {"memory.available": "5%"}},
            ["Nothing is read from EC2NodeClass a.",
             ("The kubelet settings systemReserved and evictionHard of EC2NodeClass a are not "
              "read: new nodes reserve as much as existing nodes.")],
        ),
    ],
)  # fmt: skip
def test_notes_say_which_kubelet_settings_are_applied(found, make, write, kubelet, notes):
    objects = found(make.node("n"), pool("a"), node_class("a", kubelet=kubelet))
    file = str(write("types.csv", TYPES.format(",zones", ",z", ",z")))
    _, stated = karpenter_config("dump", objects, file)
    assert [note for note in stated if "NodeClass" in note] == notes


OF_CLASS = f"{AWS}/ec2nodeclass"


@pytest.mark.parametrize(
    ("nodes", "pods"),
    [
        pytest.param([("a", {OF_CLASS: "a"}, "20")], 110, id="only a node of the limited class"),
        pytest.param([("a", {"karpenter.sh/nodepool": "pool-a"}, "20")], 110, id="by its pool"),
        pytest.param([("a", {OF_CLASS: "a"}, "20"), ("b", {OF_CLASS: "b"}, "58")], 58, id="both"),
        pytest.param([("a", {OF_CLASS: "a"}, "20"), ("c", {}, "29")], 29, id="without a class"),
        pytest.param([("a", {OF_CLASS: "b", "karpenter.sh/nodepool": "pool-a"}, "58")], 58,
                     id="the label counts, not the pool"),
        pytest.param([("b", {OF_CLASS: "b"}, "58"),
                      ("a", {OF_CLASS: "a", "node.kubernetes.io/instance-type": "large"}, "20")],
                     58, id="no node of this type"),
    ],
)  # fmt: skip
def test_nodes_of_a_class_with_a_limit_show_no_number_for_other_classes(found, make, nodes, pods):
    """The class a has maxPods 20, and the class b has no limit."""
    objects = [pool("a"), node_class("a", kubelet={"maxPods": 20}), pool("b"), node_class("b")]
    for name, labels, number in nodes:
        known = {"node.kubernetes.io/instance-type": "small", **labels}
        node = make.node(name, **known)
        node["status"]["allocatable"]["pods"] = number
        objects.append(node)
    config, _ = karpenter_config("dump", found(*objects))
    assert {one.allocatable["pods"] for one in config.types} == {pods}
    assert {one.capacity["pods"] for one in config.types} == {pods}
    [(ref, own)] = config.class_types.items()
    assert (ref.name, {one.allocatable["pods"] for one in own}) == ("a", {20})
