"""User plugins that raise or return wrong values: the run continues and names the plugin."""

from __future__ import annotations

import pytest

from fairlead.engine.framework.extension_point import METHODS
from fairlead.whatif.configuration.user_plugin import UserPlugins
from fairlead.whatif.input.error import InputError
from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario

# Two pods of lower priority, then one that preempts one of them, then one that never fits.
SCENARIO = """\
cluster:
  generated: {nodes: 2, allocatable: {cpu: "4"}}
objects:
- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}
events:
- {at: 0s, create: low.yaml, count: 2}
- {at: 30s, patch: {target: node/node-0, merge: {metadata: {labels: {rack: r1}}}}}
- {at: 1m, create: high.yaml}
- {at: 2m, create: huge.yaml}
duration: 3m
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec: {%s, containers: [{name: main, image: i, resources: {requests: {cpu: "%s"}}}]}
"""
URGENT = "priorityClassName: high"
PODS = {"low": ("priority: 0", 3), "high": (URGENT, 3), "huge": (URGENT, 9)}

# The other members that a plugin needs, so that each method is called.
COMPANIONS = {
    "reserve": "def unreserve(self, *a): pass",
    "unreserve": "def reserve(self, *a): return plugin.unschedulable('no')",
    "release_commands": "def reserve(self, *a): pass\n    def unreserve(self, *a): pass\n"
    "    def pre_bind(self, *a): return plugin.error('no')",
    "add_pod": "def remove_pod(self, *a): pass\n    def pre_filter(self, *a): pass",
    "remove_pod": "def add_pod(self, *a): pass\n    def pre_filter(self, *a): pass",
    "concerns": "def pre_filter(self, *a): pass",
    "is_prepared": "def pre_bind(self, *a): return plugin.Preparation(())",
    "is_woken_by": "def filter(self, s, p, n): return plugin.unschedulable('no')",
    "epoch": "locality = plugin.Locality.NODE\n    def score(self, *a): return 1",
}
for name in ("pre_score", "scores_alike", "normalize_scores"):
    COMPANIONS[name] = "def score(self, *a): return 1"

METHOD_NAMES = [method.name for method in METHODS]
# This method is called while the profile is built, so the run does not start.
AT_ONCE = "candidate_rules"
ANY_ANSWER = (
    "add_pod", "remove_pod", "concerns", "scores_alike", "epoch", "is_woken_by", "unreserve",
    "post_bind", "is_eligible_victim",
)  # fmt: skip


@pytest.fixture
def outcome(tmp_path):
    """Returns the outcome of a scenario with a plugin whose `method` executes `what`."""

    def outcome(method, what):
        body = COMPANIONS.get(method, "pass")
        source = tmp_path / f"broken_{method}.py"
        source.write_text(
            f"from fairlead import plugin\n"
            f"class Broken:\n    name = 'Broken'\n    {body}\n"
            f"    def {method}(self, *arguments):\n        {what}\n"
        )
        for name, (spec, cpu) in PODS.items():
            (tmp_path / f"{name}.yaml").write_text(POD % (name, spec, cpu))
        path = tmp_path / "scenario.yaml"
        path.write_text(SCENARIO)
        plugins = UserPlugins([f"{source}:Broken"])
        experiment = experiment_of(str(path), read_scenario(str(path)), plugins=plugins)
        return run_experiment(experiment, "", NoProgress()).outcome

    return outcome


def error_text(outcome):
    """Return every reason and error."""
    reasons = [pod.reason for pod in outcome.pods.values()]
    return " ".join([*reasons, *(one.message for one in outcome.errors)])


@pytest.mark.parametrize("method", [name for name in METHOD_NAMES if name != AT_ONCE])
def test_an_exception_is_reported_with_plugin_and_method(outcome, method) -> None:
    text = error_text(outcome(method, "raise OSError('disk on fire')"))
    assert f"plugin 'Broken' failed in {method}: OSError: disk on fire (broken_{method}.py:" in text


@pytest.mark.parametrize(
    "method", [name for name in METHOD_NAMES if name not in (AT_ONCE, *ANY_ANSWER)]
)
def test_a_wrong_return_value_is_reported_with_plugin_and_method(outcome, method) -> None:
    text = error_text(outcome(method, "return 'a surprise'"))
    assert f"plugin 'Broken' failed in {method}: " in text


@pytest.mark.parametrize("what", ["raise OSError('disk on fire')", "return 'a surprise'"])
def test_a_failure_at_the_start_is_bad_input(outcome, what) -> None:
    with pytest.raises(InputError, match="plugin 'Broken' failed in candidate_rules: "):
        outcome(AT_ONCE, what)
