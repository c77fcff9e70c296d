"""The public modules export what docs/python-api.md lists, and nothing else."""

from __future__ import annotations

import pydoc
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

import pytest

from fairlead import whatif

PAGE = Path(__file__).parents[2] / "docs" / "python-api.md"
SECTION = re.compile(r"^## (fairlead[.]\w+)$(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| (`.+?) \|", re.MULTILINE)
LISTED = ("fairlead.whatif", "fairlead.batch_plugin", "fairlead.testing")


def documented(module):
    """The names in the first column of the module's table."""
    text = dict(SECTION.findall(PAGE.read_text()))[module]
    return {name for row in ROW.findall(text) for name in re.findall(r"`(\w+)`", row)}


@pytest.mark.parametrize("module", LISTED)
def test_the_exports_are_those_of_the_page(module):
    exported = import_module(module).__all__
    assert len(set(exported)) == len(exported)
    assert set(exported) == documented(module)


@pytest.mark.parametrize("module", LISTED)
def test_every_exported_name_exists_and_says_what_it_is(module):
    for name in import_module(module).__all__:
        assert getattr(import_module(module), name).__doc__, name


@pytest.mark.parametrize("module", LISTED)
def test_help_describes_every_exported_name(module):
    for name in import_module(module).__all__:
        assert pydoc.render_doc(getattr(import_module(module), name)), name


@pytest.mark.parametrize("module", LISTED)
def test_completion_lists_the_exported_names_before_their_first_use(module):
    code = f"import {module}; print(set({module}.__all__) <= set(dir({module})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


@pytest.mark.parametrize("module", LISTED)
def test_other_names_are_missing(module):
    with pytest.raises(AttributeError):
        _ = import_module(module).no_such_name


@pytest.mark.parametrize("module", ["fairlead.whatif", "fairlead.testing"])
def test_the_import_alone_is_cheap(module):
    """Only what is used is imported: pytest and the command line import these packages."""
    code = f"import sys, {module}; print(any(m.startswith('fairlead.engine') for m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (whatif.ClusterChange, "drain"),
        (whatif.Failures, "fail_zone"),
        (whatif.Conditions, "plugin"),
        (whatif.BatchOptions, "plugins"),
    ],
)
def test_a_text_in_place_of_a_tuple_is_refused(options, field):
    """Each character would be a value: the drain of a node `n1` would look for a node `n`."""
    with pytest.raises(whatif.InputError) as refusal:
        options(**{field: "n1"})
    assert str(refusal.value) == (
        f"{options.__name__}: {field}: takes a tuple such as ('n1',), not the text 'n1'"
    )
    assert getattr(options(**{field: ["n1"]}), field) == ["n1"]


CHANGE, CONDITIONS = whatif.ClusterChange, whatif.Conditions


@pytest.mark.parametrize(
    ("options", "field", "value", "problem"),
    [
        (CHANGE, "add_nodes", "3", "expected int or None, got str '3'"),
        (CHANGE, "drain", None, "expected tuple, got NoneType None"),
        (CHANGE, "scale", {"deploy/web": 3}, "expected tuple, got dict {'deploy/web': 3}"),
        (CHANGE, "scale", [("deploy/web", 3)], "expected str, got tuple ('deploy/web', 3)"),
        (CHANGE, "apply", [1], "expected str or PathLike or Mapping, got int 1"),
        (CHANGE, "failures", {}, "expected Failures, got dict {}"),
        (CHANGE, "max_unavailable", 0.5, "expected int or str or None, got float 0.5"),
        (CONDITIONS, "horizon", "5m", "expected int, got str '5m'"),
        (CONDITIONS, "seed", True, "expected int, got bool True"),
        (whatif.Failures, "at", 300, "expected str, got int 300"),
        (whatif.BatchOptions, "source", b"x", "expected str or None, got bytes b'x'"),
    ],
)
def test_a_value_of_another_type_is_refused(options, field, value, problem):
    with pytest.raises(whatif.InputError) as refusal:
        options(**{field: value})
    assert str(refusal.value) == f"{options.__name__}: {field}: {problem}"


@pytest.mark.parametrize("field", ["horizon", "startup"])
def test_a_negative_duration_is_refused(field):
    with pytest.raises(whatif.InputError) as refusal:
        CONDITIONS(**{field: -1})
    assert str(refusal.value) == f"Conditions: {field}: -1 is negative"
    assert getattr(CONDITIONS(**{field: 0}), field) == 0


@pytest.mark.parametrize("field", ["horizon", "startup"])
def test_a_duration_that_was_meant_in_seconds_is_refused(field):
    with pytest.raises(whatif.InputError) as refusal:
        CONDITIONS(**{field: 600})
    problem = "600 ns is less than 1 ms; for seconds, use seconds(600)"
    assert str(refusal.value) == f"Conditions: {field}: {problem}"


@pytest.mark.parametrize("option", ["horizon", "startup_time"])
def test_the_error_for_a_too_short_option_names_the_option(option):
    with pytest.raises(whatif.InputError) as refusal:
        whatif.conditions_of(**{option: "10us"})
    assert str(refusal.value) == f"--{option.replace('_', '-')}: 10us is less than 1 ms"


def test_conditions_are_made_from_the_values_of_options():
    """The version of the node controllers is that of the other components, as with options."""
    made = whatif.conditions_of(
        behave_like="1.19",
        flags={"node-monitor-grace-period": "20s"},
        autoscale="karpenter",
        provision_time=("3m",),
        horizon="2h",
        startup_time="30s",
        seeds=4,
    )
    assert made.releases.general == made.releases.nodes
    assert made.node_lifecycle.profile == made.releases.nodes.node_lifecycle
    assert made.node_lifecycle.node_monitor_grace_period == whatif.seconds(20)
    assert (made.autoscale.autoscale, made.provider.provision_time) == (
        "karpenter", whatif.seconds(180)
    )  # fmt: skip
    assert (made.horizon, made.startup) == (whatif.seconds(7200), whatif.seconds(30))
    assert made.seeds == 4
    assert whatif.conditions_of() == whatif.Conditions()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"autoscale": True}, "conditions_of: autoscale: expected str, got bool True"),
        ({"horizon": 5}, "conditions_of: horizon: expected str, got int 5"),
        ({"horizon": None}, "conditions_of: horizon: expected str, got NoneType None"),
        ({"startup_time": 30}, "conditions_of: startup_time: expected str, got int 30"),
        ({"node_groups": 3}, "conditions_of: node_groups: expected str, got int 3"),
        ({"flags": ["a"]}, "conditions_of: flags: expected Mapping, got list ['a']"),
        ({"provision_time": "3m"}, "conditions_of: provision_time: expected tuple, got str '3m'"),
        ({"provision_time": (3,)}, "conditions_of: provision_time[0]: expected str, got int 3"),
        ({"flags": {"a": 2}}, "conditions_of: flags['a']: expected str, got int 2"),
        ({"flags": "a=2"}, "conditions_of: flags: expected Mapping, got str 'a=2'"),
        ({"feature_gates": 3}, "conditions_of: feature_gates: expected str or Mapping, got int 3"),
        ({"horizon": "x"}, "--horizon: 'x' is not a duration such as 90s, 1h30m or 500ms"),
    ],
)
def test_a_wrong_value_of_an_option_is_refused(options, problem):
    with pytest.raises(whatif.InputError) as refusal:
        whatif.conditions_of(**options)
    assert str(refusal.value) == problem


@pytest.mark.parametrize(
    ("plugins", "problem"), [([3], "[0]: expected str or type"), (3, ": expected Iterable")]
)
def test_plugins_of_a_wrong_type_are_refused(plugins, problem):
    with pytest.raises(whatif.InputError) as refusal:
        whatif.read_scheduler_config(None, plugins=plugins)
    assert str(refusal.value) == f"read_scheduler_config: plugins{problem}, got int 3"


NOTHING = whatif.Snapshot("dump.json", (), 0)


@pytest.mark.parametrize(
    ("function", "arguments", "problem"),
    [
        ("what_if", ("a.json", CHANGE()), "snapshot: expected Snapshot"),
        ("what_if", (NOTHING, "a.json"), "change: expected ClusterChange"),
        ("what_if", (NOTHING, CHANGE(), "a.json"), "conditions: expected Conditions"),
        ("explain_pod", ("a.json", "pod/shop/web"), "snapshot: expected Snapshot"),
        ("experiment_of", ("a.yaml", "a.json"), "scenario: expected Scenario"),
        ("run_experiment", ("a.json",), "experiment: expected Experiment"),
        ("whatif_result", ("a.json",), "answer: expected WhatIfAnswer"),
        ("simulation_result", ("a.json", None), "experiment: expected Experiment"),
        ("explain_pod", (NOTHING, "pod/shop/web", "a.json"), "config: expected SchedulerConfig"),
        ("explanation_json", ("a.json",), "explanation: expected Explanation"),
        ("encode_snapshot", ("a.json", 0), "objects: expected list or tuple"),
        ("encode_snapshot", (["a.json"], 0), "objects[0]: expected dict"),
        ("encode_snapshot", ([], "a.json"), "taken_at: expected int"),
    ],
)
def test_a_path_in_place_of_a_value_is_refused(function, arguments, problem):
    """read_snapshot and read_scenario read files; the other functions take their results."""
    with pytest.raises(whatif.InputError) as refusal:
        getattr(whatif, function)(*arguments)
    assert str(refusal.value) == f"{function}: {problem}, got str 'a.json'"


@pytest.mark.parametrize(
    ("argument", "kind"), [("batch", "BatchOptions"), ("release", "ReleaseChoice")]
)
def test_the_settings_of_an_experiment_have_their_types(argument, kind):
    path = PAGE.parents[1] / "examples" / "priorities" / "scenario.yaml"
    with pytest.raises(whatif.InputError) as refusal:
        whatif.experiment_of(path, whatif.read_scenario(path), **{argument: "1.21"})
    assert str(refusal.value) == f"experiment_of: {argument}: expected {kind}, got str '1.21'"


def test_a_pod_is_named_by_a_text():
    with pytest.raises(whatif.InputError) as refusal:
        whatif.explain_pod(NOTHING, None)
    assert str(refusal.value) == "explain_pod: target: expected str, got NoneType None"


def test_the_duration_of_failures_is_a_field_of_the_change():
    """It also applies to drains, so it is stored once."""
    snapshot = whatif.read_snapshot(PAGE.parents[1] / "examples" / "store" / "store.yaml")
    failures = whatif.Failures(fail_zone=("west-1b",))
    answer = whatif.what_if(snapshot, whatif.ClusterChange(failures=failures, lasts="20m"))
    assert not answer.difference.pending
    with pytest.raises(TypeError, match="lasts"):
        whatif.Failures(fail_zone=("west-1b",), lasts="20m")


def test_an_object_is_applied_without_a_file():
    snapshot = whatif.read_snapshot(PAGE.parents[1] / "examples" / "store" / "store.yaml")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "big"},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "64"}}}]
        },
    }
    answer = whatif.what_if(snapshot, whatif.ClusterChange(apply=(pod,)))
    assert answer.change.words == ["--apply Pod/big"]
    assert [one.key for one in answer.difference.pending] == ["default/big"]
    pod["spec"]["containers"][0]["zone"] = "a"
    with pytest.raises(whatif.InputError) as refusal:
        whatif.what_if(snapshot, whatif.ClusterChange(apply=(pod,)))
    assert str(refusal.value) == (
        "ClusterChange.apply[0]: Pod default/big: spec.containers[0].zone: unknown field"
    )


def test_an_object_to_apply_contains_what_json_can_contain():
    snapshot = whatif.read_snapshot(PAGE.parents[1] / "examples" / "store" / "store.yaml")
    spec = MappingProxyType({"containers": [{"name": "c", "image": "i"}]})
    pod = MappingProxyType(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
    )
    answer = whatif.what_if(snapshot, whatif.ClusterChange(apply=(pod,)))
    assert "default/a" in answer.changed.pods
    own_parent = {}
    own_parent["spec"] = own_parent
    for value, problem in (
        ({"spec": object()}, "it contains an object of the class object"),
        (own_parent, "it is nested too deeply"),
        ({"kind": "\ud800"}, "'utf-8' codec can't encode"),
    ):
        with pytest.raises(whatif.InputError) as refusal:
            whatif.what_if(snapshot, whatif.ClusterChange(apply=(value,)))
        said = "ClusterChange.apply[0]: cannot be written as JSON: "
        assert str(refusal.value).startswith(said + problem)


def test_the_values_of_a_session_have_a_short_repr():
    """A notebook prints the last value of each cell."""
    examples = PAGE.parents[1] / "examples"
    snapshot = whatif.read_snapshot(examples / "store" / "store.yaml")
    change = whatif.ClusterChange(drain=("worker-03",))
    answer = whatif.what_if(snapshot, change, whatif.Conditions(seed=7))
    pod = "pod/store/search-58f855c4f4-kvqhp"
    explanation = whatif.explain_pod(snapshot, pod, whatif.read_scheduler_config(None))
    scenario = examples / "priorities" / "scenario.yaml"
    experiment = whatif.experiment_of(scenario, whatif.read_scenario(scenario))
    dump = f"<Snapshot: {snapshot.source} at 2026-11-20T05:00:00Z, 96 objects>"
    assert repr(snapshot) == dump
    assert repr(change) == "ClusterChange(drain=('worker-03',), failures=Failures())"
    assert repr(answer) == (
        f"<WhatIfAnswer: {snapshot.source} --drain worker-03: {answer.verdict.first.sentence}>"
    )
    assert repr(answer.difference).startswith("<Difference: 2 moved, ")
    assert repr(answer.changed).startswith("<RunOutcome: 51 pods, 12 nodes, ")
    assert repr(explanation).endswith("the scheduler would choose worker-01>")
    assert repr(experiment) == f"<Experiment: priorities on a crowded pool ({scenario})>"
    assert repr(whatif.run_experiment(experiment)).startswith("<FinishedRun: <RunOutcome: ")


def test_the_lists_of_an_outcome_are_attributes():
    """A method without its parentheses would be true even if no pod is pending."""
    scenario = PAGE.parents[1] / "examples" / "priorities" / "scenario.yaml"
    experiment = whatif.experiment_of(scenario, whatif.read_scenario(scenario))
    outcome = whatif.run_experiment(experiment).outcome
    assert (len(outcome.placed), len(outcome.pending), outcome.completed) == (7, 0, [])
    assert [one.key for one in outcome.displaced] == [one.pod.key for one in outcome.preempted]


def test_a_path_is_read_as_its_text():
    """The results must name the file as text, because they are written as JSON."""
    examples = PAGE.parents[1] / "examples"
    snapshot = whatif.read_snapshot(examples / "store" / "store.yaml")
    path = examples / "priorities" / "scenario.yaml"
    experiment = whatif.experiment_of(path, whatif.read_scenario(path))
    assert (snapshot.source, experiment.source) == (
        str(examples / "store" / "store.yaml"), str(path)
    )  # fmt: skip
    with pytest.raises(whatif.InputError, match=r"store\.yaml: apiVersion: must be one of"):
        whatif.read_scheduler_config(examples / "store" / "store.yaml")
