"""Conversion of configurations of versions before v1 to v1."""

from __future__ import annotations

import msgspec
import pytest

from fairlead.engine.configuration.error import ConfigurationError
from fairlead.engine.configuration.old_versions import OLD_FORMS, AlphaForm, alpha_as_v1, beta_as_v1

GROUP = "kubescheduler.config.k8s.io"


def beta(version="v1beta1", **fields):
    value = {"apiVersion": f"{GROUP}/{version}", **fields}
    return beta_as_v1(msgspec.convert(value, OLD_FORMS[version]))


def alpha(**fields):
    return alpha_as_v1(msgspec.convert(fields, AlphaForm))


def scores(enabled=(), disabled=()):
    named = {"enabled": enabled, "disabled": disabled}
    sets = {key: [{"name": name} for name in names] for key, names in named.items()}
    return {"plugins": {"score": sets}}


def args_of(form):
    return {one.name: one.args for one in form.profiles[0].plugin_config}


def score_of(form):
    points = form.profiles[0].plugins.score
    return [one.name for one in points.enabled], [one.name for one in points.disabled]


LEAST, MOST = "NodeResourcesLeastAllocated", "NodeResourcesMostAllocated"
FIT, RATIO = "NodeResourcesFit", "RequestedToCapacityRatio"


@pytest.mark.parametrize(
    ("plugins", "score", "args"),
    [
        pytest.param(scores(), ([], []), {}, id="no plugin"),
        pytest.param(scores([LEAST]), ([FIT], []), {}, id="the default plugin enabled"),
        pytest.param(scores([MOST], [LEAST]), ([FIT], []),
                     {FIT: {"scoringStrategy": {"type": "MostAllocated"}}}, id="another plugin"),
        pytest.param(scores([MOST], ["*"]), ([FIT], ["*"]),
                     {FIT: {"scoringStrategy": {"type": "MostAllocated"}}}, id="no default plugin"),
        pytest.param(scores(disabled=[LEAST]), ([], [FIT]), {}, id="the default plugin disabled"),
    ],
)  # fmt: skip
def test_old_scoring_plugins_become_scoring_strategies(plugins, score, args):
    found = beta(profiles=[plugins])
    assert score_of(found) == score
    assert args_of(found) == args


def test_arguments_of_old_scoring_plugins_become_those_of_the_strategy():
    shape = [{"utilization": 0, "score": 10}]
    found = beta(
        profiles=[
            {
                **scores([RATIO], [LEAST]),
                "pluginConfig": [
                    {"name": FIT, "args": {"ignoredResources": ["a/b"]}},
                    {"name": RATIO, "args": {"shape": shape, "resources": [{"name": "cpu"}]}},
                    {"name": LEAST, "args": {"resources": []}},
                ],
            }
        ]
    )
    strategy = {
        "type": RATIO,
        "resources": [{"name": "cpu"}],
        "requestedToCapacityRatio": {"shape": shape},
    }
    assert args_of(found) == {FIT: {"ignoredResources": ["a/b"], "scoringStrategy": strategy}}


def test_later_versions_do_not_convert_the_names_of_old_scoring_plugins():
    found = beta("v1beta2", profiles=[scores(disabled=[LEAST])])
    assert score_of(found) == ([], [LEAST])


def test_disable_preemption_disables_the_plugin_default_preemption():
    for form in (alpha(disablePreemption=True), beta("v1alpha2", disablePreemption=True)):
        points = form.profiles[0].plugins.post_filter
        assert [one.name for one in points.disabled] == ["DefaultPreemption"]
    assert alpha(disablePreemption=False).profiles[0].plugins.post_filter.disabled == ()


def test_a_v1alpha1_configuration_becomes_one_profile():
    found = alpha(
        schedulerName="mine",
        algorithmSource={"provider": "ClusterAutoscalerProvider"},
        hardPodAffinitySymmetricWeight=10,
        bindTimeoutSeconds=60,
        percentageOfNodesToScore=40,
        podInitialBackoffSeconds=2,
    )
    [profile] = found.profiles
    assert profile.scheduler_name == "mine"
    assert found.percentage_of_nodes_to_score == 40
    assert found.pod_initial_backoff_seconds == 2
    assert args_of(found) == {
        "InterPodAffinity": {"hardPodAffinityWeight": 10},
        FIT: {"scoringStrategy": {"type": "MostAllocated"}},
        "VolumeBinding": {"bindTimeoutSeconds": 60},
    }


@pytest.mark.parametrize(
    ("ask", "field", "problem"),
    [
        (lambda: beta(profiles=[scores([MOST])]), "profiles[0].plugins.score",
         f"{MOST} and {LEAST} are strategies of"),
        (lambda: beta(profiles=[{"plugins": {"unreserve": {"enabled": [{"name": "A"}]}}}]),
         "profiles[0].plugins.unreserve", "is not an extension point any more"),
        (lambda: alpha(algorithmSource={"policy": {"file": {"path": "p"}}}),
         "algorithmSource.policy", "a Policy is not read"),
        (lambda: alpha(algorithmSource={"provider": "Mine"}),
         "algorithmSource.provider", "no provider 'Mine'; known: DefaultProvider"),
    ],
)  # fmt: skip
def test_settings_without_an_equivalent_in_v1_are_refused(ask, field, problem):
    with pytest.raises(ConfigurationError) as refused:
        ask()
    assert refused.value.field == field
    assert problem in refused.value.problem
