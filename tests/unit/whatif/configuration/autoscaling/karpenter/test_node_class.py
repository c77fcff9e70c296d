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
            ["Only kubelet settings are read from EC2NodeClass a.",
             "New nodes of EC2NodeClass a have its limits of pods: maxPods 58 and podsPerCore 10."],
        ),
        (
            {"systemReserved": {"cpu": "1"}, "evictionHard": {"memory.available": "5%"}},
            ["Only kubelet settings are read from EC2NodeClass a.",
             ("New nodes of EC2NodeClass a reserve as much as its existing nodes of the instance "
              "type. Without such a node, systemReserved and evictionHard of the class and "
              "Karpenter's defaults apply.")],
        ),
        (
            {"kubeReserved": {"cpu": "much"}},
            ["Only kubelet settings are read from EC2NodeClass a.",
             ("Invalid kubelet settings of EC2NodeClass a are ignored: 'much': quantities must "
              "match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")],
        ),
        (
            {"maxPods": "many"},
            ["Only kubelet settings are read from EC2NodeClass a.",
             ("Invalid kubelet settings of EC2NodeClass a are ignored: "
              "Expected `int | null`, got `str` - at `$.spec.kubelet.maxPods`")],
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


GIB = 1024
"""Amounts of memory are in MiB."""
DEFAULT_MEMORY = 11 * 110 + 255  # kubeReserved, if the node has 110 pods


@pytest.mark.parametrize(
    ("spec", "cpu", "memory"),
    [
        ({"kubelet": {"kubeReserved": {"cpu": "500m", "memory": "1Gi"}}}, 1500, 7 * GIB - 100),
        ({"kubelet": {"kubeReserved": {"cpu": "500m"}}}, 1500, 8 * GIB - DEFAULT_MEMORY - 100),
        ({"kubelet": {"systemReserved": {"memory": "1Gi"}}}, 1930, 7 * GIB - DEFAULT_MEMORY - 100),
        ({"kubelet": {"evictionHard": {"memory.available": "25%"}}}, 1930,
         6 * GIB - DEFAULT_MEMORY),
        ({"kubelet": {"evictionHard": {"memory.available": "100%"}}}, 1930,
         8 * GIB - DEFAULT_MEMORY),
        ({"kubelet": {"evictionHard": {"memory.available": "1Gi"},
                      "evictionSoft": {"memory.available": "2Gi"}}}, 1930,
         6 * GIB - DEFAULT_MEMORY),
        ({"kubelet": {"evictionHard": {"memory.available": "1Gi"},
                      "evictionSoft": {"memory.available": "2Gi"}}, **BOTTLEROCKET}, 1930,
         7 * GIB - DEFAULT_MEMORY),
        ({"kubelet": {"systemReserved": {"memory": "1Gi"}, "maxPods": 20}}, 1930,
         7 * GIB - DEFAULT_MEMORY - 100),
        ({"kubelet": {"systemReserved": {"memory": "1Gi"}, "maxPods": 20}, **BOTTLEROCKET}, 1930,
         7 * GIB - (11 * 20 + 255) - 100),
        ({"kubelet": {"evictionSoft": {"memory.available": "2Gi"}}, **BOTTLEROCKET}, None, None),
        ({"kubelet": {"kubeReserved": {"cpu": "much"}}}, None, None),
    ],
)  # fmt: skip
def test_new_nodes_reserve_what_their_node_class_states(found, make, write, spec, cpu, memory):
    """A machine with 2 cores and 8Gi. No node has its type; the kubelet of `n` reserves nothing."""
    objects = found(make.node("n"), pool("a"), node_class("a", **spec), pool("b"), node_class("b"))
    config, _ = karpenter_config("dump", objects, str(write("types.csv", TYPES.format("", "", ""))))
    own = {ref.name: types[0].allocatable for ref, types in config.class_types.items()}
    if cpu is None:
        assert own == {}
        return
    assert own.keys() == {"a"}
    assert (own["a"]["cpu"], own["a"]["memory"]) == (cpu, memory << 20)
    assert (config.types[0].allocatable["cpu"], config.types[0].allocatable["memory"]) == (
        2000, 8 * GIB << 20,
    )  # fmt: skip


def test_amounts_in_the_file_of_instance_types_come_first(found, make, write):
    spec = {"kubelet": {"kubeReserved": {"cpu": "500m", "memory": "1Gi"}}}
    objects = found(make.node("n"), pool("a"), node_class("a", **spec))
    file = str(write("types.csv", "name,cpu,memory,allocatableCpu\nsmall,2,8Gi,1700m\n"))
    config, _ = karpenter_config("dump", objects, file)
    [[small]] = config.class_types.values()
    assert (small.allocatable["cpu"], small.allocatable["memory"] >> 20) == (1700, 7 * GIB - 100)


@pytest.mark.parametrize(("of_class", "own", "other"), [("a", 1800, 1900), ("b", 1930, 1800)])
def test_a_node_of_the_class_shows_what_its_kubelet_reserves(found, make, of_class, own, other):
    """A node of a class with settings shows nothing about other classes, if another node does."""
    spec = {"kubelet": {"systemReserved": {"memory": "1Gi"}}}
    nodes = []
    for name, labels, cpu in (("x", {OF_CLASS: of_class}, "1800m"), ("y", {}, "1900m")):
        node = make.node(name, **{"node.kubernetes.io/instance-type": "small"}, **labels)
        node["status"]["capacity"] = {"cpu": "2", "memory": "8Gi", "pods": "110"}
        node["status"]["allocatable"] = {"cpu": cpu, "memory": "7Gi", "pods": "110"}
        nodes.append(node)
    if of_class == "b":
        nodes.pop()
    config, _ = karpenter_config("dump", found(*nodes, pool("a"), node_class("a", **spec)))
    [[small]] = config.class_types.values()
    assert (small.allocatable["cpu"], config.types[0].allocatable["cpu"]) == (own, other)


def test_a_node_class_without_a_spec_has_no_kubelet_settings(found, make, write):
    broken = {key: value for key, value in node_class("a").items() if key != "spec"}
    file = str(write("types.csv", TYPES.format("", "", "")))
    config, _ = karpenter_config("dump", found(make.node("n"), pool("a"), broken), file)
    assert not config.class_types
