"""Zones of new nodes, from the provider's node classes."""

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


def node_class(name, *zones, subnets=None):
    return {
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
