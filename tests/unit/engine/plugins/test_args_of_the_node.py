"""Arguments of plugins that read one node: their effects, and invalid values."""

from __future__ import annotations

import pytest

from fairlead.engine.core.status import SKIP
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.scheduling.compose import ProfileError

GPU = "nvidia.com/gpu"


def requirement(key, *values, operator="In"):
    return {"key": key, "operator": operator, "values": list(values)}


def required(*expressions):
    terms = [{"matchExpressions": list(expressions)}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def preferred(weight, *expressions):
    term = {"weight": weight, "preference": {"matchExpressions": list(expressions)}}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [term]}


@pytest.fixture
def ruled(new_scene):
    """A cluster of two pools, with affinity added to every pod by NodeAffinityArgs."""

    def make(affinity):
        scene = new_scene({"NodeAffinity": {"addedAffinity": affinity}})
        scene.node("a", labels={"pool": "gpu", "disk": "ssd"})
        scene.node("b", labels={"pool": "web", "disk": "ssd"})
        return scene, scene.plugin("NodeAffinity")

    return make


def test_added_requirements_hold_for_every_pod_and_come_first(ruled):
    """upstream: node_affinity.go: Filter."""
    scene, plugin = ruled(required(requirement("pool", "gpu")))
    enforced = "node(s) didn't match scheduler-enforced node affinity"
    assert scene.verdicts(plugin, scene.incoming()) == {"a": "", "b": enforced}
    picky = scene.incoming(nodeSelector={"disk": "hdd"})
    own = "node(s) didn't match Pod's node affinity/selector"
    assert scene.verdicts(plugin, picky) == {"a": own, "b": enforced}


def test_added_preferences_score_beside_the_pods_own(ruled):
    """upstream: node_affinity.go: Score."""
    scene, plugin = ruled(preferred(3, requirement("pool", "gpu")))
    own = {"nodeAffinity": preferred(2, requirement("pool", "web"))}
    for pod, expected in ((scene.incoming(), [3, 0]), (scene.incoming(affinity=own), [3, 2])):
        assert plugin.pre_score(CycleState(), pod, scene.rows()) is None
        rows = scene.rows("a", "b")
        found = plugin.score_columns(CycleState(), pod, scene.table, rows)
        assert found.tolist() == expected
        assert [plugin.score(CycleState(), pod, scene.table.at(row)) for row in rows] == expected


def test_only_nodes_that_the_scheduler_allows_wake_a_pod(ruled):
    """upstream: node_affinity.go: isSchedulableAfterNodeChange."""
    scene, plugin = ruled(required(requirement("pool", "gpu")))
    nodes = [scene.table.find(name).node for name in ("a", "b")]
    events = [ClusterEvent(EventKind.NODE_ADD, None, node) for node in nodes]
    assert [plugin.is_woken_by(scene.incoming(), event) for event in events] == [True, False]


@pytest.mark.parametrize(
    "term",
    [{}, {"matchExpressions": [requirement("pool", "gpu", operator="Is")]}],
    ids=["empty", "an unknown operator"],
)
def test_a_term_that_cannot_match_matches_no_node(scene, term):
    """The other terms still may."""
    scene.node("a", labels={"pool": "gpu"})
    scene.node("b", labels={"pool": "web"})
    plugin = scene.plugin("NodeAffinity")
    own = "node(s) didn't match Pod's node affinity/selector"
    web = {"matchExpressions": [requirement("pool", "web")]}
    for terms, expected in (([term], {"a": own, "b": own}), ([term, web], {"a": own, "b": ""})):
        rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        pod = scene.incoming(affinity={"nodeAffinity": rule})
        assert scene.verdicts(plugin, pod) == expected


@pytest.fixture
def balancing(new_scene):
    """A plugin that balances cpu, memory and GPUs, and a node of 100 each, half its cpu used."""
    names = ("cpu", "memory", GPU)
    args = {"resources": [{"name": name, "weight": 1} for name in names]}
    scene = new_scene({"NodeResourcesBalancedAllocation": args})
    scene.node("a")
    node = scene.table.find("a").node
    offered = {"cpu": "100", "memory": "100", GPU: "100", "pods": "9"}
    scene.put(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": node.metadata.name},
            "status": {"allocatable": offered},
        }
    )
    scene.pod("there", "a", containers=[{"name": "c", "resources": {"requests": {"cpu": "50"}}}])
    return scene, scene.plugin("NodeResourcesBalancedAllocation")


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        # cpu 0.5, memory 0: deviation 0.25, balance 75. With memory 0.5: even, balance 100.
        pytest.param({"memory": "50"}, 50 + (50 + 100 - 75) // 2, id="gpus do not count"),
        # cpu 0.5, memory 0, gpu 0: deviation 0.2357, balance 76. With gpu 0.5 the same.
        pytest.param({GPU: "50"}, 50 + (50 + 76 - 76) // 2, id="gpus count for who asks for any"),
        # all at 0.5
        pytest.param({GPU: "50", "memory": "50"}, 50 + (50 + 100 - 76) // 2, id="all even"),
    ],
)
def test_the_use_of_any_resources_can_be_balanced(balancing, requests, expected):
    """upstream: balanced_allocation.go: balancedResourceScorer."""
    scene, plugin = balancing
    pod = scene.incoming(containers=[{"name": "c", "resources": {"requests": requests}}])
    assert plugin.pre_score(CycleState(), pod, scene.rows()) is None
    assert plugin.score(CycleState(), pod, scene.table.find("a")) == expected


def test_pods_without_requests_of_balanced_resources_are_skipped(balancing):
    """upstream: balanced_allocation.go: isBestEffortPod."""
    scene, plugin = balancing
    assert plugin.pre_score(CycleState(), scene.incoming(), scene.rows()) is SKIP


@pytest.mark.parametrize(
    ("ignored", "resource", "fits"),
    [
        ({"ignoredResources": [GPU]}, GPU, True),
        ({"ignoredResourceGroups": ["nvidia.com"]}, GPU, True),
        ({"ignoredResourceGroups": ["nvidia.org"]}, GPU, False),
        ({"ignoredResources": ["hugepages-2Mi"]}, "hugepages-2Mi", False),
    ],
)
def test_extended_resources_can_be_ignored(new_scene, ignored, resource, fits):
    """Kubernetes' own resources cannot (fit.go: fitsRequest)."""
    scene = new_scene({"NodeResourcesFit": ignored})
    scene.node("a")
    pod = scene.incoming(containers=[{"name": "c", "resources": {"requests": {resource: "1"}}}])
    scene.table.widen()
    verdict = scene.verdicts(scene.plugin("NodeResourcesFit"), pod, CycleState())
    assert verdict == {"a": "" if fits else f"Insufficient {resource}"}


RATIO = {"type": "RequestedToCapacityRatio"}


def shape(*points):
    return {"shape": [{"utilization": x, "score": y} for x, y in points]}


@pytest.mark.parametrize(
    ("plugin", "args", "problem"),
    [
        ("NodeAffinity", {"addedAffinity": required(requirement("a", operator="Is"))},
         'nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Is"'),
        ("NodeAffinity", {"addedAffinity": preferred(1, requirement("a"))},
         "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].matchExpressions[0]"),
        ("NodeAffinity", {"addedAffinity": {"required": {}}}, "unknown field `required`"),
        ("NodeResourcesFit", {"ignoredResources": ["a b"]}, "ignoredResources[0]: Invalid value"),
        ("NodeResourcesFit", {"ignoredResourceGroups": ["a/b"]},
         "ignoredResourceGroups[0]: Invalid value: \"a/b\": resource group name can't contain"),
        ("NodeResourcesFit", {"ignoredResourceGroups": ["a b"]},
         "ignoredResourceGroups[0]: Invalid value"),
        ("DynamicResources", {"filterTimeout": "-1s"},
         'filterTimeout: Invalid value: "-1s": must be zero or positive'),
        ("DynamicResources", {"bindingTimeout": "999ms"},
         'bindingTimeout: Invalid value: "999ms": must be at least 1 second'),
        ("NodeResourcesFit", {"scoringStrategy": {}},
         'scoringStrategy.type: Unsupported value: ""'),
        ("NodeResourcesFit", {"scoringStrategy": {"type": "Best"}},
         'scoringStrategy.type: Unsupported value: "Best": supported values: "LeastAllocated"'),
        ("NodeResourcesFit",
         {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu",
                                                                      "weight": 101}]}},
         "scoringStrategy.resources[0].weight: Invalid value: 101: resource weight of cpu not"),
        ("NodeResourcesFit", {"scoringStrategy": RATIO},
         "scoringStrategy.requestedToCapacityRatio: Required value"),
        ("NodeResourcesFit",
         {"scoringStrategy": {"type": "MostAllocated", "requestedToCapacityRatio": shape((0, 1))}},
         "scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil"),
        ("NodeResourcesFit", {"scoringStrategy": RATIO | {"requestedToCapacityRatio": shape()}},
         "requestedToCapacityRatio.shape: Required value: at least one point"),
        ("NodeResourcesFit",
         {"scoringStrategy": RATIO | {"requestedToCapacityRatio": shape((50, 1), (50, 2))}},
         "shape[1].utilization: Invalid value: 50: values must be sorted in increasing order"),
        ("NodeResourcesFit",
         {"scoringStrategy": RATIO | {"requestedToCapacityRatio": shape((0, 1), (101, 2))}},
         "shape[1].utilization: Invalid value: 101: not in valid range [0, 100]"),
        ("NodeResourcesFit",
         {"scoringStrategy": RATIO | {"requestedToCapacityRatio": shape((0, 11))}},
         "shape[0].score: Invalid value: 11: not in valid range [0, 10]"),
        ("NodeResourcesBalancedAllocation", {"resources": [{"name": "cpu", "weight": 2}]},
         "resources[0].weight: Invalid value: 2: must be 1"),
        ("NodeResourcesBalancedAllocation", {"resources": [{"name": "cpu"}, {"name": "cpu"}]},
         'resources[1].name: Duplicate value: "cpu"'),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused_naming_the_field(new_scene, plugin, args, problem):
    """upstream: validation_pluginargs.go."""
    with pytest.raises(ProfileError) as refusal:
        new_scene({plugin: args})
    assert f"pluginConfig {plugin}: " in str(refusal.value)
    assert problem in str(refusal.value)
