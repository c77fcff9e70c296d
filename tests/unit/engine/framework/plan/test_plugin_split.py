"""Which plugin results are cached between cycles, and how idle plugins are skipped."""

from __future__ import annotations

from weakref import ref

import pytest

from fairlead.engine.core.stimulus import ObjectChanged, ObjectsLoaded
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import ShapeRelevance
from fairlead.engine.framework.plan import plan_cache
from fairlead.engine.framework.plan.plan_cache import PlanCache, looks_beyond_the_node
from fairlead.engine.framework.plan.plugin_split import PluginSplit
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.profile import Profile
from fairlead.engine.scheduling.compose import PluginHandle, build_profile
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.storage_builders import make_claim_volumes

VOLUME_PLUGINS = ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")


@pytest.fixture
def framework():
    handle = PluginHandle(Cluster(), Nominator())
    return build_profile(Profile(), handle, TieBreak(0)).framework


def info(pod):
    return PodInfo(pod, Cluster().shapes.shape_of(pod))


def names(points):
    return [point.name for point in points]


def test_cached_filters_end_before_the_first_filter_that_cannot_be_cached(framework):
    """So the rejection that is reported is still the first one in configured order."""
    split = PluginSplit(framework)
    kept = names([*split.static_filters, *split.row_filters])
    assert kept == names(framework.filters)[: len(kept)]
    assert split.cluster_filters[0].name == "VolumeRestrictions"


def test_an_idle_plugin_does_not_end_the_cached_filters(framework):
    """It is in no list, and the plugins after it are cached."""
    split = PluginSplit(framework, VOLUME_PLUGINS)
    filters = names([*split.static_filters, *split.row_filters, *split.cluster_filters])
    assert filters == [name for name in names(framework.filters) if name not in VOLUME_PLUGINS]
    assert not set(VOLUME_PLUGINS) & set(names(split.pre_filters))
    assert "VolumeBinding" not in names(split.cluster_scorers)


def test_volume_plugins_are_idle_for_pods_without_volumes(framework):
    """A mounted ConfigMap does not concern the volume plugins."""
    plugins = [framework.find(name) for name in VOLUME_PLUGINS]
    assert all(isinstance(plugin, ShapeRelevance) for plugin in plugins)
    token = {"volumes": [{"name": "t", "projected": {}}, {"name": "c", "configMap": {}}]}
    for spec, expected in (({}, False), (token, False), (make_claim_volumes("c"), True)):
        pod = info(make_pod("a", spec=spec))
        assert {plugin.concerns(pod.shape) for plugin in plugins} == {expected}


def test_plans_are_split_by_idle_plugins(framework):
    """All shapes with the same idle plugins share one split; idle plugins count as skipped."""
    plans = PlanCache(framework)
    plain, other, claimed = (
        plans.plan_for(PodInfo(pod, framework.cluster.shapes.shape_of(pod)))
        for pod in (
            make_pod("a"),
            make_pod("b", requests={"cpu": "1"}),
            make_pod("c", spec=make_claim_volumes("c")),
        )
    )
    assert plain.split is other.split
    assert set(VOLUME_PLUGINS) <= set(plain.state.skipped_filters)
    assert not set(VOLUME_PLUGINS) & set(claimed.state.skipped_filters)
    assert not looks_beyond_the_node(plain, state_with(plain, "InterPodAffinity"))
    assert looks_beyond_the_node(claimed, CycleState())


def planned(plans, name, **fields):
    pod = make_pod(name, **fields)
    return plans.plan_for(PodInfo(pod, plans.framework.cluster.shapes.shape_of(pod)))


TOLERATED = {"tolerations": [{"key": "k", "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("fields", "shares"),
    [
        ({"requests": {"cpu": "1"}}, True),
        ({"labels": {"app": "a"}, "host_ports": [80]}, True),
        ({"spec": TOLERATED}, False),
        ({"spec": {"nodeSelector": {"disk": "ssd"}}}, False),
        ({"spec": {"containers": [{"name": "c", "image": "other"}]}}, False),
        ({"node": "n", "requests": {"cpu": "1"}}, False),
    ],
    ids=["requests", "labels and ports", "tolerations", "selector", "image", "a bound pod"],
)
def test_plans_share_results_of_plugins_that_read_equal_fields(framework, fields, shares):
    """NODE plugins read neither requests, labels nor ports."""
    plans = PlanCache(framework)
    assert (planned(plans, "a").static is planned(plans, "b", **fields).static) is shares


def test_shared_results_follow_the_nodes(framework):
    """Each plan notices a changed node, also if another plan has recomputed the shared results."""
    cluster, plans = framework.cluster, PlanCache(framework)
    cluster.apply(ObjectsLoaded([make_node("n1"), make_node("n2")]))
    wanted = {name: {"requests": {"cpu": cpu}} for name, cpu in (("a", "1"), ("b", "2"))}
    for unschedulable, expected in ((False, [0, 0]), (True, [1, 0]), (False, [0, 0])):
        cluster.apply(ObjectChanged(make_node("n1", unschedulable=unschedulable)))
        for name, fields in wanted.items():
            plan = planned(plans, name, **fields)
            assert (plan.codes != 0).tolist() == [bool(one) for one in expected]
            assert (plan.total < 0).tolist() == [bool(one) for one in expected]
    cluster.apply(ObjectChanged(make_node("n3")))
    assert [planned(plans, name, **fields).codes.tolist() for name, fields in wanted.items()] == [
        [0, 0, 0],
        [0, 0, 0],
    ]


def test_a_shape_is_kept_while_it_has_a_plan(framework, monkeypatch):
    """A plan that is no longer used is dropped, and its shape with it."""
    monkeypatch.setattr(plan_cache, "_PLANS_MAX", 2)
    plans, shapes = PlanCache(framework), framework.cluster.shapes

    def planned(cpu):
        pod = make_pod("a", requests={"cpu": cpu})
        info = PodInfo(pod, shapes.shape_of(pod))
        return plans.plan_for(info), ref(info.shape)

    first, shape = planned("1")
    assert planned("2")[0] is not first
    assert planned("1")[0] is first
    planned("3")
    assert planned("1")[0] is first
    planned("4")
    planned("5")
    del first
    assert shape() is None


def state_with(plan, *skipped):
    """Return a state in which PreFilter of these plugins returned Skip."""
    state = CycleState()
    state.skipped_filters |= dict.fromkeys((*plan.state.skipped_filters, *skipped))
    state.skipped_filters |= dict.fromkeys(("PodTopologySpread", "DynamicResources"))
    return state
