"""KubeSchedulerConfiguration: what is taken over, and what is refused by name."""

from __future__ import annotations

import pytest

from fairlead.framework.profile import DEFAULT_PLUGINS
from fairlead.scheduling.config import SchedulerConfig
from fairlead.whatif.input_error import InputError
from fairlead.whatif.scheduler_config import read_scheduler_config

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture
def read(write):
    return lambda text: read_scheduler_config(write("s.yaml", HEAD + text))


def profile(text):
    return f"profiles: [{{schedulerName: default-scheduler, {text}}}]"


def test_no_file_and_an_empty_configuration_mean_the_default(read):
    assert read_scheduler_config(None) == SchedulerConfig()
    assert read("") == SchedulerConfig()
    assert read("percentageOfNodesToScore: 100") == SchedulerConfig()


def test_what_changes_no_decision_is_left_alone(read):
    text = "parallelism: 16\nleaderElection: {leaderElect: true}\nclientConnection: {qps: 5}\n"
    assert read(text) == SchedulerConfig()


def test_weights_and_absences_are_taken_over(read):
    [found] = read(
        profile(
            "plugins: {multiPoint: {disabled: [{name: ImageLocality}]},"
            " score: {enabled: [{name: NodeResourcesFit, weight: 5}],"
            " disabled: [{name: NodeResourcesBalancedAllocation}]},"
            " postFilter: {disabled: [{name: DefaultPreemption}]}}"
        )
    ).profiles
    weights = dict(found.plugins)
    assert set(dict(DEFAULT_PLUGINS)) - set(weights) == {"ImageLocality", "DefaultPreemption"}
    assert weights["NodeResourcesFit"] == 5
    assert weights["NodeResourcesBalancedAllocation"] == 0
    assert weights["TaintToleration"] == 3


def test_the_scoring_strategy_is_taken_over(read):
    strategy = "{type: MostAllocated, resources: [{name: cpu, weight: 1}]}"
    text = f"pluginConfig: [{{name: NodeResourcesFit, args: {{scoringStrategy: {strategy}}}}}]"
    [found] = read(profile(text)).profiles
    assert found.args["NodeResourcesFit"]["scoringStrategy"]["type"] == "MostAllocated"


def test_default_arguments_of_other_plugins_are_accepted(read):
    text = "pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 1}}]"
    assert read(profile(text)) == SchedulerConfig(
        (SchedulerConfig().profiles[0].__class__(args={"InterPodAffinity": {}}),)
    )


def test_several_profiles_have_several_names(read):
    found = read("profiles: [{schedulerName: a}, {schedulerName: b}]")
    assert [each.scheduler_name for each in found.profiles] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("percentageOfNodesToScore: 50", "percentageOfNodesToScore: every node is scored"),
        ("extenders: [{urlPrefix: x}]", "extenders: are not called yet"),
        ("podMaxBackoffSeconds: 0", "podMaxBackoffSeconds: must not be less"),
        ("paralelism: 2", "paralelism: unknown field; did you mean parallelism?"),
        ("profiles: [{schedulerName: a}, {schedulerName: a}]", "profiles[1].schedulerName: 'a' "),
        (profile("plugins: {filter: {disabled: [{name: NodeName}]}}"),
         "profiles[0].plugins.filter: is not supported yet; use multiPoint"),
        (profile("plugins: {multiPoint: {disabled: [{name: PrioritySort}]}}"),
         "profiles[0].plugins.multiPoint: PrioritySort cannot be done without"),
        (profile("plugins: {multiPoint: {disabled: [{name: Nod}]}}"),
         "profiles[0].plugins.multiPoint.disabled[0].name: no plugin 'Nod'"),
        (profile("plugins: {multiPoint: {enabled: [{name: Coscheduling}]}}"),
         "profiles[0].plugins.multiPoint.enabled[0].name: no plugin 'Coscheduling'"),
        (profile("plugins: {score: {enabled: [{name: ImageLocality, weight: -1}]}}"),
         "profiles[0].plugins.score.enabled[0].weight: -1 is not from 0"),
        (profile("plugins: {score: {enabled: [{name: NodeName, weight: 2}]}}"),
         "profiles[0].plugins.score.enabled[0].name: no plugin 'NodeName'"),
        (profile("pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 5}}]"),
         "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: InterPodAffinity is supported"),
        (profile("pluginConfig: [{name: NodeName, args: {}}]"),
         "profiles[0].pluginConfig[0].name: NodeName takes no arguments"),
        (profile("pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: Best}}}]"),
         "profiles[0]: profile default-scheduler: pluginConfig NodeResourcesFit"),
    ],
)  # fmt: skip
def test_what_the_engine_does_not_do_is_refused_by_name(read, text, line):
    with pytest.raises(InputError) as refused:
        read(text)
    assert f"s.yaml: {line}" in str(refused.value)


def test_other_kinds_and_versions_are_refused(write):
    with pytest.raises(InputError, match=r"apiVersion: must be kubescheduler.config.k8s.io/v1"):
        read_scheduler_config(write("s.yaml", HEAD.replace("/v1", "/v1beta3")))
    with pytest.raises(InputError, match="kind: must be KubeSchedulerConfiguration"):
        read_scheduler_config(write("s.yaml", HEAD.replace("SchedulerC", "C")))
