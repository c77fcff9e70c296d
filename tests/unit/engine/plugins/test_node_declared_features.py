"""NodeDeclaredFeatures: pods run where the node declares the features that they need.

upstream: plugins/nodedeclaredfeatures: Filter, isSchedulableAfterNodeChange;
features/restartallcontainers and features/usernamespaceshostnetwork: InferForScheduling
"""

from __future__ import annotations

import msgspec
import pytest

from fairlead.engine.core.status import Code
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind

RESTART = "RestartAllContainersOnContainerExits"
HOST = "UserNamespacesHostNetworkSupport"
WORDS = "node(s) didn't match Pod's required features"


def node(scene, name, *features):
    scene.node(name)
    known = scene.table.find(name).node
    status = msgspec.structs.replace(known.status, declared_features=features)
    changed = msgspec.structs.replace(known, status=status)
    scene.tell(changed)
    return changed


def restarting(action="RestartAllContainers"):
    rule = {"action": action, "exitCodes": {"operator": "In", "values": [42]}}
    return {"name": "c", "restartPolicyRules": [rule]}


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({}, None),
        ({"containers": [restarting("Restart")]}, None),
        ({"containers": [restarting()]}, {"both", "restart"}),
        ({"initContainers": [restarting()]}, {"both", "restart"}),
        ({"hostNetwork": True}, None),
        ({"hostUsers": False}, None),
        ({"hostNetwork": True, "hostUsers": True}, None),
        ({"hostNetwork": True, "hostUsers": False}, {"both"}),
        ({"hostNetwork": True, "hostUsers": False, "containers": [restarting()]}, {"both"}),
    ],
)
def test_which_nodes_can_run_a_pod(scene, spec, fits):
    """Nodes that declare all features of the pod; most pods need none (None: skipped)."""
    node(scene, "plain")
    node(scene, "restart", "Another", RESTART)
    node(scene, "both", HOST, RESTART)
    plugin = scene.plugin("NodeDeclaredFeatures")
    pod = scene.incoming(**spec)
    assert plugin.concerns(pod.shape) is (fits is not None)
    found = scene.verdicts(plugin, pod)
    if fits is None:
        assert found == "skipped"
    else:
        assert found == {name: "" if name in fits else WORDS for name in found}


def test_preemption_does_not_help(scene):
    """The removal of pods declares no feature."""
    node(scene, "plain")
    plugin = scene.plugin("NodeDeclaredFeatures")
    pod = scene.incoming(containers=[restarting()])
    status = plugin.filter(scene.started(plugin, pod), pod, scene.table.find("plain"))
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_a_node_that_declares_a_new_feature_wakes_pods(scene):
    """A new node wakes them, too; other changes of a node do not."""
    before, after = node(scene, "a"), node(scene, "a", RESTART)
    plugin = scene.plugin("NodeDeclaredFeatures")
    pod = scene.incoming(containers=[restarting()])
    kind = EventKind.NODE_DECLARED_FEATURES
    assert plugin.is_woken_by(pod, ClusterEvent(kind, before, after))
    assert not plugin.is_woken_by(pod, ClusterEvent(kind, after, after))
    assert plugin.is_woken_by(pod, ClusterEvent(EventKind.NODE_ADD, None, after))
