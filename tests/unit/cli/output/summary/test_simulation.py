"""Summaries are compact, and names in them are never interpreted as markup."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from fairlead.cli.output.summary.simulation import print_simulation
from fairlead.whatif.result.result_json import simulation_result
from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario

SCENARIO = """\
title: "[bold]crowd[/bold]\\nno second line"
cluster: {generated: {nodes: 1, allocatable: {cpu: 2}}}
duration: 5m
events:
- at: 1s
  count: 40
  create: {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i,
    resources: {requests: {cpu: 1}}}]}}
- {at: 1m, delete: pod/p-00}
- {at: 2m, delete: pod/p-00}
"""


@pytest.fixture
def printed(tmp_path):
    """Returns the summary at a width."""
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO)
    experiment = experiment_of(str(path), read_scenario(str(path)))
    outcome = run_experiment(experiment, "", NoProgress()).outcome

    def print_at(width):
        screen = io.StringIO()
        console = Console(file=screen, width=width, highlight=False, emoji=False)
        print_simulation(experiment, outcome, console)
        return screen.getvalue()

    return print_at


@pytest.fixture
def text(printed):
    return printed(100)


def test_no_count_is_split_between_two_lines(printed):
    assert (
        "placed 2   pending 37   completed 0   preempted 0   evicted 0   moved 0\nPDBs breached 0\n"
    ) in printed(80)


def test_the_verdict_and_the_scheduler_are_in_the_first_lines(text):
    """The report has them at its top, too."""
    lines = text.splitlines()
    assert lines[1].startswith("37 of 39 pods are pending at the end: Insufficient cpu")
    assert " · default scheduler · " in " ".join(lines[2:4])


def test_the_title_is_text_on_one_line(text):
    assert text.splitlines()[0] == "[bold]crowd[/bold] no second line"


def test_counts_reasons_and_shares_are_shown(text):
    assert "placed 2   pending 37   completed 0" in text
    assert "37  Insufficient cpu  default/p-03, default/p-04 and 35 more" in text
    assert ["cpu", "0", "/", "2", "0.0%", "2", "/", "2", "100.0%"] in map(
        str.split, text.splitlines()
    )
    assert "events[2].delete" in text
    assert 'pods "p-00" not found' in text


def test_waits_for_a_node_are_shown_in_total_and_by_workload(text):
    """`p-00` is deleted after a minute, and `p-02` gets its place after its backoff."""
    words = " ".join(text.split())
    assert (
        "pods waited for a node: 3 bound, median 0s, 95% within 1m29s, longest 1m29s "
        "(default/p-02), 37 still waiting - pod/default/p-03: 1 still waiting"
    ) in words
    assert "and 33 more workloads" in words


def test_waits_are_shown_only_if_a_pod_got_its_node_late(tmp_path):
    """No pod gets a node late, and the pending pods have their own section."""
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO.replace("{at: 1m, delete", "{at: 30s, delete"))
    experiment = experiment_of(str(path), read_scenario(str(path)))
    screen = io.StringIO()
    outcome = run_experiment(experiment, "", NoProgress()).outcome
    print_simulation(experiment, outcome, Console(file=screen))
    assert "pending 37" in screen.getvalue()
    assert "pods waited" not in screen.getvalue()


def test_a_note_explains_why_more_pods_use_resources_than_run(tmp_path):
    """The pod is evicted from the stopped node, whose kubelet cannot confirm that it is gone."""
    path = tmp_path / "s.yaml"
    path.write_text("""\
cluster: {generated: {nodes: 2, zones: 2}}
objects:
- {apiVersion: v1, kind: Pod, metadata: {name: p},
   spec: {nodeName: node-0, containers: [{name: c, image: i}]}}
events: [{at: 1m, stop-node: node-0}]
duration: 10m
""")
    experiment = experiment_of(str(path), read_scenario(str(path)))
    screen = io.StringIO()
    outcome = run_experiment(experiment, "", NoProgress()).outcome
    print_simulation(experiment, outcome, Console(file=screen))
    note = "The requests of 1 terminating pod count on its node; 1 of 1 also counts as placed."
    assert note in " ".join(screen.getvalue().split())
    assert simulation_result(experiment, outcome)["notes"] == [note]
