"""Reading a KubeSchedulerConfiguration: the resulting profiles, and the messages of refusals."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.engine.framework.profile import DEFAULT_PLUGINS, PointPlugins, Profile
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.configuration.scheduler_config import read_scheduler_config
from fairlead.whatif.configuration.user_plugin import UserPlugins
from fairlead.whatif.input.error import InputError

GROUP = "kubescheduler.config.k8s.io"
EXTENDER = "urlPrefix: http://127.0.0.1:1"


def head(version="v1"):
    return f"apiVersion: {GROUP}/{version}\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture
def read(write):
    return lambda text, version="v1": read_scheduler_config(
        write("s.yaml", head(version) + text), allow_extenders=True
    )


def profile(text):
    return f"profiles: [{{schedulerName: default-scheduler, {text}}}]"


def args(plugin, text):
    return profile(f"pluginConfig: [{{name: {plugin}, args: {text}}}]")


def test_no_file_and_an_empty_configuration_mean_the_default(read):
    assert read_scheduler_config(None) == SchedulerConfig()
    assert read("") == SchedulerConfig()
    assert read("percentageOfNodesToScore: 100") == SchedulerConfig()


def test_fields_without_effect_on_decisions_are_ignored(read):
    text = (
        "parallelism: 16\nleaderElection: {leaderElect: true}\nclientConnection: {qps: 5}\n"
        "delayCacheUntilActive: true\nenableProfiling: false\nenableContentionProfiling: false\n"
    )
    assert read(text) == SchedulerConfig()


def test_null_fields_are_not_set(read):
    """In many files, all entries of a list are comments."""
    plugins = "plugins: {multiPoint: , score: {disabled: , enabled: }}"
    spread = "{name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: }}"
    config = f"pluginConfig: [{{name: NodeAffinity, args: }}, {spread}]"
    text = profile(f"percentageOfNodesToScore: , {plugins}, {config}")
    args = {"NodeAffinity": {}, "PodTopologySpread": {"defaultingType": "List"}}
    assert read(f"extenders:\nleaderElection:\n{text}").profiles == (Profile(args=args),)
    assert read("profiles:").profiles == (Profile(),)


def test_plugins_are_enabled_at_multi_point_and_at_single_extension_points(read):
    [found] = read(
        profile(
            "plugins: {multiPoint: {disabled: [{name: ImageLocality}]},"
            " score: {enabled: [{name: NodeResourcesFit, weight: 5}],"
            " disabled: [{name: NodeResourcesBalancedAllocation}]},"
            " postFilter: {disabled: [{name: DefaultPreemption}]}}"
        )
    ).profiles
    assert set(dict(DEFAULT_PLUGINS)) - set(dict(found.plugins)) == {"ImageLocality"}
    assert found.points == {
        "Score": PointPlugins((("NodeResourcesFit", 5),), ("NodeResourcesBalancedAllocation",)),
        "PostFilter": PointPlugins((), ("DefaultPreemption",)),
    }


@pytest.mark.parametrize(
    ("plugin", "given"),
    [
        ("NodeResourcesFit",
         {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu"}]}}),
        ("InterPodAffinity", {"hardPodAffinityWeight": 50}),
        ("NodeAffinity", {"addedAffinity": {}}),
        ("DefaultPreemption", {"minCandidateNodesAbsolute": 7}),
        ("VolumeBinding", {"bindTimeoutSeconds": 60}),
        ("DynamicResources", {"filterTimeout": "5s"}),
        ("PodTopologySpread", {"defaultingType": "List"}),
        ("NodeResourcesBalancedAllocation", {"resources": [{"name": "cpu", "weight": 1}]}),
    ],
)  # fmt: skip
def test_plugin_arguments_are_read(read, plugin, given):
    typed = given | {"apiVersion": f"{GROUP}/v1", "kind": f"{plugin}Args"}
    [found] = read(args(plugin, typed)).profiles
    assert found.args == {plugin: given}


def test_several_profiles_have_their_own_scheduler_names(read):
    found = read("profiles: [{schedulerName: a}, {schedulerName: b}]")
    assert [each.scheduler_name for each in found.profiles] == ["a", "b"]


@pytest.mark.parametrize(
    ("everyone", "own", "expected"),
    [
        (None, None, None), (0, None, None), (100, None, None), (30, None, 30),
        (30, 100, None), (30, 60, 60), (None, 60, 60),
        # Upstream writes its default as 0 in the global field; in a profile, 0 is explicit.
        (30, 0, 0), (None, 0, 0),
    ],
)  # fmt: skip
def test_all_nodes_are_scored_unless_a_percentage_is_set(read, everyone, own, expected):
    """A profile's own percentageOfNodesToScore overrides the global one."""
    text = "" if everyone is None else f"percentageOfNodesToScore: {everyone}\n"
    text += profile("" if own is None else f"percentageOfNodesToScore: {own}")
    assert read(text).profiles[0].node_percentage == expected


def test_backoff_durations_and_the_gate_for_the_backoff_queue_are_read(read):
    found = read(
        "podInitialBackoffSeconds: 2\npodMaxBackoffSeconds: 20\n"
        "featureGates: {SchedulerPopFromBackoffQ: false, SchedulerAsyncPreemption: true}"
    ).backoff
    assert (found.initial, found.maximum) == (seconds(2), seconds(20))
    assert not found.pop_from_backoff


def test_resources_that_extenders_count_are_ignored_in_every_profile(read):
    """They replace the resources in the arguments (scheduler.go: buildExtenders)."""
    resources = "managedResources: [{name: a.com/gpu, ignoredByScheduler: true}]"
    fit = "pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [a.com/other]}}]"
    found = read(
        f"profiles: [{{schedulerName: a, {fit}}}, {{schedulerName: b}}]\n"
        f"extenders: [{{{EXTENDER}, {resources}}}]"
    )
    ignored = [each.args["NodeResourcesFit"]["ignoredResources"] for each in found.profiles]
    assert ignored == [["a.com/gpu"], ["a.com/gpu"]]
    assert [extender.url_prefix for extender in found.extenders] == ["http://127.0.0.1:1"]


@pytest.mark.parametrize("version", ["v1beta3", "v1beta2", "v1beta1", "v1alpha2"])
def test_older_api_versions_are_read(read, version):
    assert read("", version) == SchedulerConfig()
    [found] = read(args("InterPodAffinity", "{hardPodAffinityWeight: 5}"), version).profiles
    assert found.args["InterPodAffinity"] == {"hardPodAffinityWeight": 5}


@pytest.mark.parametrize(
    ("field", "versions"),
    [
        ("healthzBindAddress: ''", {"v1beta2", "v1beta1", "v1alpha2", "v1alpha1"}),
        ("metricsBindAddress: ''", {"v1beta2", "v1beta1", "v1alpha2", "v1alpha1"}),
        ("disablePreemption: false", {"v1alpha2", "v1alpha1"}),
        ("bindTimeoutSeconds: 600", {"v1alpha2", "v1alpha1"}),
        ("hardPodAffinitySymmetricWeight: 1", {"v1alpha1"}),
    ],
)
def test_fields_that_only_some_old_versions_have(read, field, versions):
    """upstream: kube-scheduler/config/v*/types.go: KubeSchedulerConfiguration"""
    for version in ("v1", "v1beta3", "v1beta2", "v1beta1", "v1alpha2", "v1alpha1"):
        if version in versions:
            assert read(field, version)
        else:
            with pytest.raises(InputError, match=f"{field.split(':')[0]}: unknown field"):
                read(field, version)


def test_the_documented_way_to_disable_preemption(read):
    text = "algorithmSource:\n  provider: DefaultProvider\n\ndisablePreemption: true\n"
    [found] = read(text, "v1alpha1").profiles
    assert found == Profile(points={"PostFilter": PointPlugins((), ("DefaultPreemption",))})


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("percentageOfNodesToScore: 101",
         "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"),
        (profile("percentageOfNodesToScore: -1"),
         "profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]"),
        ("parallelism: 0", "parallelism: Invalid value: 0: should be an integer value greater"),
        ("podInitialBackoffSeconds: 0",
         "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"),
        ("podInitialBackoffSeconds: 60", "podMaxBackoffSeconds: Invalid value: 10: must be great"),
        ("paralelism: 2", "paralelism: unknown field; did you mean parallelism?"),
        (
            "leaderElection: {leaseDuraton: 15s}",
            "leaderElection.leaseDuraton: unknown field; did you mean leaseDuration?",
        ),
        ("leaderElection: {renewDeadline: 5}", "leaderElection.renewDeadline: expected str"),
        ("clientConnection: {qps: many}", "clientConnection.qps: expected float | null, got str"),
        ("enableProfiling: maybe", "enableProfiling: expected bool | null, got str"),
        ("profiles: [{schedulerName: a}, {schedulerName: a}]",
         'profiles[1].schedulerName: Duplicate value: "profiles[0].schedulerName"'),
        ("profiles: [{schedulerName: a}, {}]", "profiles[1].schedulerName: Required value"),
        ("profiles: [{schedulerName: ''}]", "profiles[0].schedulerName: Required value"),
        ("leaderElection: {leaseDuration: 10s}",
         'leaderElection.leaseDuration: Invalid value: "10s": must be greater than renewDeadline'),
        ("leaderElection: {renewDeadline: 20s}",
         'leaderElection.leaseDuration: Invalid value: "15s": must be greater than renewDeadline'),
        ("leaderElection: {retryPeriod: -1s}",
         'leaderElection.retryPeriod: Invalid value: "-1s": must be greater than zero'),
        ("leaderElection: {resourceLock: endpoints}",
         'resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"'),
        ("leaderElection: {retryPeriod: soon}", "leaderElection.retryPeriod: "),
        ("clientConnection: {burst: -1}",
         "clientConnection.burst: Invalid value: -1: must be non-negative"),
        (profile("plugins: {filtre: {}}"), "profiles[0].plugins.filtre: unknown field"),
        (profile("plugins: {queueSort: {disabled: [{name: PrioritySort}]}}"),
         "profiles[0]: profile default-scheduler: only one queue sort plugin required"),
        (profile("plugins: {multiPoint: {disabled: [{name: '*'}]}}"),
         "profiles[0]: profile default-scheduler: only one queue sort plugin required"),
        (profile("plugins: {bind: {disabled: [{name: '*'}]}}"),
         "profiles[0]: profile default-scheduler: at least one bind plugin is needed"),
        (profile("plugins: {filter: {enabled: [{name: NodeName}, {name: NodeName}]}}"),
         'profiles[0]: profile default-scheduler: plugin "NodeName" already registered as'),
        (profile("plugins: {score: {enabled: [{name: NodeName, weight: 2}]}}"),
         'profiles[0].plugins.score.enabled[0].name: plugin "NodeName" does not extend'),
        (args("InterPodAffinity", "{hardPodAffinityWeight: 101}"),
         "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 101: not in"),
        (args("NodeResourcesFit", "{scoringStrategy: {type: Best}}"),
         'profiles[0].pluginConfig[0].args.scoringStrategy.type: Unsupported value: "Best"'),
        (args("NodeResourcesFit", "{scoringStrategy: {kind: Best}}"),
         "profiles[0].pluginConfig[0].args.scoringStrategy.kind: unknown field; known: "),
        (args("NodeAffinity", "{addedAffinity: 3}"),
         "profiles[0].pluginConfig[0].args.addedAffinity: expected object | null, got int"),
        (args("DefaultPreemption", "{minCandidateNodesPercentage: 101}"),
         "args.minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]"),
        (args("DefaultPreemption",
              "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}"),
         "args.minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time"),
        (args("VolumeBinding", "{bindTimeoutSeconds: -1}"),
         "args.bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds"),
        (args("DynamicResources", "{bindingTimeout: 1ms}"),
         'args.bindingTimeout: Invalid value: "1ms": must be at least 1 second'),
        (args("NodeAffinity", "{kind: OtherArgs}"),
         "profiles[0].pluginConfig[0].args.kind: must be NodeAffinityArgs"),
        (args("NodeName", "{a: 1}"), "profiles[0].pluginConfig[0].name: NodeName takes no arg"),
        (args("Coscheduling", "{}"), "profiles[0].pluginConfig[0].name: no plugin 'Coscheduling'"),
        (profile("pluginConfig: [{name: NodeAffinity}, {name: NodeAffinity}]"),
         'profiles[0].pluginConfig[1]: Duplicate value: "NodeAffinity"'),
        ("featureGates: {Sched: true}",
         "featureGates.Sched: Fairlead has no such gate for Kubernetes 1.36; known: "),
        ("featureGates: {SchedulerAsyncPreemption: false}",
         "featureGates.SchedulerAsyncPreemption: Forbidden: Fairlead supports only true"),
        ("extenders: [{}]", "extenders[0].urlPrefix: is required"),
        ("extenders: [{urlPrefix: x}]", 'extenders[0].urlPrefix: Invalid value: "x": must be'),
        (f"extenders: [{{{EXTENDER}, filterverb: f}}]",
         "extenders[0].filterverb: unknown field; did you mean filterVerb?"),
        (f"extenders: [{{{EXTENDER}, tlsConfig: {{caFile: /nowhere.pem}}}}]",
         "extenders[0].tlsConfig.caFile: cannot be read: No such file or directory"),
        (f"extenders: [{{{EXTENDER}, tlsConfig: {{caData: Q0E=}}}}]",
         "extenders[0].tlsConfig.caData: cannot be used: "),
        (f"extenders: [{{{EXTENDER}, tlsConfig: {{certData: Q0E=, keyData: Q0E=}}}}]",
         "extenders[0].tlsConfig.certData: cannot be used: "),
    ],
)  # fmt: skip
def test_invalid_input_is_refused_with_file_and_field(read, text, line):
    with pytest.raises(InputError) as refused:
        read(text)
    assert line in str(refused.value)
    assert "s.yaml: " in str(refused.value)


def test_durations_of_a_leader_election_that_is_off_are_not_checked(read):
    text = "leaderElection: {leaderElect: false, leaseDuration: 1s, resourceLock: endpoints}"
    assert isinstance(read(text), SchedulerConfig)


def test_other_kinds_and_versions_are_refused(write):
    with pytest.raises(InputError, match=f"apiVersion: must be one of {GROUP}/v1, {GROUP}/v1beta3"):
        read_scheduler_config(write("s.yaml", head("v2")))
    with pytest.raises(InputError, match="kind: must be KubeSchedulerConfiguration"):
        read_scheduler_config(write("s.yaml", head().replace("SchedulerC", "C")))


def test_refusals_of_the_oldest_version_name_the_fields_of_that_version(read):
    for text, line in (
        ("algorithmSource: {policy: {}}", "s.yaml: algorithmSource.policy: a Policy is not read"),
        (
            "pluginConfig: [{name: NodeName, args: {a: 1}}]",
            "s.yaml: pluginConfig[0].name: NodeName",
        ),
        ("profiles: []", "s.yaml: profiles: unknown field"),
        (
            "plugins: {bind: {disabled: [{name: '*'}]}}",
            "s.yaml: profile default-scheduler: at least",
        ),
    ):
        with pytest.raises(InputError) as refused:
            read(text, "v1alpha1")
        assert line in str(refused.value)


SORTS = """
class Sorts:
    name = "Sorts"

    def __init__(self, args):
        pass

    def sort_key(self, pod, timestamp):
        return (timestamp,)
"""


@pytest.mark.parametrize(
    ("first", "second", "line"),
    [
        pytest.param("{}", "{a: 1}", "profiles[1].pluginConfig: ", id="other arguments"),
        pytest.param("{}", None, 'profiles[1].plugins.queueSort: Invalid value: "PrioritySort"',
                     id="another plugin"),
    ],
)  # fmt: skip
def test_all_profiles_must_have_the_same_queue_sort_plugin(
    write, tmp_path, monkeypatch, first, second, line
):
    """All profiles share one queue."""
    (tmp_path / "sorts_here.py").write_text(SORTS)
    monkeypatch.syspath_prepend(tmp_path)
    order = (
        "plugins: {queueSort: {disabled: [{name: '*'}], enabled: [{name: Sorts}]}},"
        " pluginConfig: [{name: Sorts, args: %s}]"
    )
    texts = [f"schedulerName: a, {order % first}", "schedulerName: b"]
    if second is not None:
        texts[1] += f", {order % second}"
    path = write("s.yaml", head() + "profiles: [" + ", ".join(f"{{{t}}}" for t in texts) + "]")
    with pytest.raises(InputError) as refused:
        read_scheduler_config(path, UserPlugins(["sorts_here:Sorts"]))
    assert line in str(refused.value)
    assert "must be the same for all profiles" in str(refused.value)


PAGE = Path(__file__).parents[4] / "docs" / "configuration.md"
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_examples_of_the_documentation_are_read(write, text):
    assert read_scheduler_config(write("s.yaml", text)).profiles
