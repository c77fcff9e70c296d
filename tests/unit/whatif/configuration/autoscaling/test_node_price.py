"""Notes about the prices of nodes that a file of instance types lacks."""

from __future__ import annotations

import pytest

from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.configuration.autoscaling.instance_type_file import StatedType
from fairlead.whatif.configuration.autoscaling.node_price import price_notes
from fairlead.whatif.configuration.autoscaling.open_cost_price import capacity_type_of
from fairlead.whatif.planner.cluster_model import ClusterModel

TYPE = "node.kubernetes.io/instance-type"
PRICED = StatedType("small", {"cpu": "4"}, prices={("on-demand", ""): 1.0})


@pytest.fixture
def nodes_of(snapshot):
    """Returns the nodes of a cluster of `objects`."""
    return lambda *objects: list(ClusterModel(snapshot(*objects), SchedulerConfig()).table.nodes())


ESTIMATES = "fairlead size estimates it from cores and memory."


@pytest.mark.parametrize(
    ("labels", "start"),
    [
        ({TYPE: "large"}, "--instance-types states no price of large. "),
        (
            {},
            f"The cost of nodes without an instance type counts as 0: n. {ESTIMATES}",
        ),
        (
            {TYPE: "small", "karpenter.sh/capacity-type": "spot"},
            "--instance-types states no spot price of small. ",
        ),
    ],
    ids=["another type", "no type", "a spot node"],
)
def test_a_note_is_about_nodes_whose_price_is_unknown(make, nodes_of, labels, start):
    nodes = nodes_of(make.node("n", **labels))
    [note] = price_notes(nodes, [PRICED, StatedType("large", {"cpu": "8"})])
    assert note.startswith(start)
    assert not [*price_notes(nodes, [])]


@pytest.mark.parametrize(
    "label",
    [
        ("karpenter.sh/capacity-type", "spot"),
        ("eks.amazonaws.com/capacityType", "SPOT"),
        ("cloud.google.com/gke-spot", "true"),
        ("cloud.google.com/gke-preemptible", "true"),
        ("kubernetes.azure.com/scalesetpriority", "spot"),
    ],
)
def test_labels_of_providers_mark_spot_nodes(label):
    assert capacity_type_of(dict([label])) == "spot"
    assert capacity_type_of({label[0]: "other"}) == "on-demand"


def test_known_prices_need_no_note(make, nodes_of):
    nodes = nodes_of(make.node("n", **{TYPE: "small"}))
    assert not [*price_notes(nodes, [PRICED])]
