"""NodeUnschedulable: cordoned nodes, and the events after which pods are retried."""

from __future__ import annotations

import pytest

from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.plugins.node_unschedulable import NodeUnschedulable
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.plugin_scene import PluginScene

CORDONED = make_node("n1", unschedulable=True)
KEY = "node.kubernetes.io/unschedulable"
TOLERATED = {
    "nothing": (None, False),
    "the taint": ({"key": KEY, "operator": "Exists", "effect": "NoSchedule"}, True),
    "the key with every effect": ({"key": KEY, "operator": "Exists"}, True),
    "everything": ({"operator": "Exists"}, True),
    "the key with another effect": (
        {"key": KEY, "operator": "Exists", "effect": "NoExecute"},
        False,
    ),
    "another key": ({"key": "k", "operator": "Exists"}, False),
}


def pod_info(scene, toleration):
    return scene.info(make_pod("a", spec={"tolerations": [toleration] if toleration else []}))


@pytest.mark.parametrize(("toleration", "fits"), TOLERATED.values(), ids=TOLERATED)
def test_a_cordoned_node_needs_the_toleration_of_its_taint(toleration, fits):
    """The node need not have the taint yet. Both forms of the plugin agree."""
    scene, plugin = PluginScene(nodes=[CORDONED, make_node("n2")]), NodeUnschedulable()
    pod, table = pod_info(scene, toleration), scene.cluster.table
    verdicts = [plugin.filter(CycleState(), pod, table.find(name)) for name in ("n1", "n2")]
    assert [one is None for one in verdicts] == [fits, True]
    rows = [table.find(name).row for name in ("n1", "n2")]
    codes = plugin.filter_columns(CycleState(), pod, table, rows).codes
    assert (codes == 0).tolist() == [fits, True]
    assert fits or verdicts[0].reasons == ("node(s) were unschedulable",)


@pytest.mark.parametrize(
    ("old", "new", "is_woken"),
    [
        (None, make_node("n1"), True),
        (None, CORDONED, False),
        (CORDONED, make_node("n1"), True),
        (make_node("n1"), CORDONED, False),
        (make_node("n1"), make_node("n1", cpu="64"), False),
    ],
)
def test_an_uncordoned_node_wakes_pods(old, new, is_woken):
    pod = pod_info(PluginScene(), None)
    event = ClusterEvent(EventKind.NODE_TAINT, old, new)
    assert NodeUnschedulable().is_woken_by(pod, event) is is_woken


@pytest.mark.parametrize(("toleration", "fits"), TOLERATED.values(), ids=TOLERATED)
def test_only_a_toleration_of_the_unschedulable_taint_wakes_the_pod(toleration, fits):
    scene = PluginScene()
    pod = pod_info(scene, toleration)
    event = ClusterEvent(EventKind.POD_TOLERATION, pod_info(scene, None), pod)
    assert NodeUnschedulable().is_woken_by(pod, event) is fits
