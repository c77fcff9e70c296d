"""Answers what-if questions: runs a cluster with and without a change and compares the two runs.

    from fairlead import whatif

    snapshot = whatif.read_snapshot("dump.yaml")
    answer = whatif.what_if(snapshot, whatif.ClusterChange(drain=("worker-3",)))
    for move in answer.difference.moved:
        print(move.pod.key, move.origin, move.target)

docs/python-api.md is the guide.

    snapshot/        the objects of a cluster, from files or a live cluster
    change/          changes to the cluster
    configuration/   scheduler, batch scheduler and controllers
    run/             one run of the engine, and its recorders
    outcome/         the result of a run as values, and the difference between two runs
    question         runs a what-if: its settings are in `conditions`, its two experiments in
                     `experiment_pair`, and its result in `answer`
    comparison       compares several answers side by side
    input/           reads the user's files; the errors name file and field
    audit/           audit logs of kube-apiserver
    replay/          replays of recorded histories
    scenario/        scenario files
    sweep/           runs of one scenario with different values
    descheduler/     one run of a descheduler, as a change
    explain/         explanations of objects, such as pods, workloads, nodes and budgets
    planner/         the pods that still fit, the nodes that can be removed, the nodes to buy
    next_steps/      what to ask or do next
    result/          the result as JSON
    report/          the HTML report

All user input is checked here before a run starts, and every problem is one `InputError` that names
file, object and field. Only the engine makes decisions.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fairlead.engine.core.instant import seconds
    from fairlead.whatif.answer import WhatIfAnswer
    from fairlead.whatif.change.cluster_change import ClusterChange
    from fairlead.whatif.change.node_outage.node_failure import Failures
    from fairlead.whatif.conditions import Conditions, conditions_of
    from fairlead.whatif.configuration.batch.options import BatchOptions
    from fairlead.whatif.configuration.scheduler_config import read_scheduler_config
    from fairlead.whatif.explain.pod import Explanation, explain_pod, explanation_json
    from fairlead.whatif.input.error import InputError
    from fairlead.whatif.outcome.comparison.difference import Difference, Move
    from fairlead.whatif.outcome.run_outcome import PodEnd, RunOutcome
    from fairlead.whatif.question import what_if
    from fairlead.whatif.result.result_json import simulation_result, whatif_result
    from fairlead.whatif.run.experiment import Experiment
    from fairlead.whatif.run.experiment_run import FinishedRun, run_experiment
    from fairlead.whatif.scenario.scenario import experiment_of, read_scenario
    from fairlead.whatif.snapshot.snapshot import Snapshot, encode_snapshot, read_snapshot

__all__ = [
    "BatchOptions",
    "ClusterChange",
    "Conditions",
    "Difference",
    "Experiment",
    "Explanation",
    "Failures",
    "FinishedRun",
    "InputError",
    "Move",
    "PodEnd",
    "RunOutcome",
    "Snapshot",
    "WhatIfAnswer",
    "conditions_of",
    "encode_snapshot",
    "experiment_of",
    "explain_pod",
    "explanation_json",
    "read_scenario",
    "read_scheduler_config",
    "read_snapshot",
    "run_experiment",
    "seconds",
    "simulation_result",
    "what_if",
    "whatif_result",
]

_MODULES: Final = {
    "BatchOptions": "fairlead.whatif.configuration.batch.options",
    "ClusterChange": "fairlead.whatif.change.cluster_change",
    "Conditions": "fairlead.whatif.conditions",
    "Difference": "fairlead.whatif.outcome.comparison.difference",
    "Experiment": "fairlead.whatif.run.experiment",
    "Explanation": "fairlead.whatif.explain.pod",
    "Failures": "fairlead.whatif.change.node_outage.node_failure",
    "FinishedRun": "fairlead.whatif.run.experiment_run",
    "InputError": "fairlead.whatif.input.error",
    "Move": "fairlead.whatif.outcome.comparison.difference",
    "PodEnd": "fairlead.whatif.outcome.run_outcome",
    "RunOutcome": "fairlead.whatif.outcome.run_outcome",
    "Snapshot": "fairlead.whatif.snapshot.snapshot",
    "WhatIfAnswer": "fairlead.whatif.answer",
    "conditions_of": "fairlead.whatif.conditions",
    "encode_snapshot": "fairlead.whatif.snapshot.snapshot",
    "experiment_of": "fairlead.whatif.scenario.scenario",
    "explain_pod": "fairlead.whatif.explain.pod",
    "explanation_json": "fairlead.whatif.explain.pod",
    "read_scenario": "fairlead.whatif.scenario.scenario",
    "read_scheduler_config": "fairlead.whatif.configuration.scheduler_config",
    "read_snapshot": "fairlead.whatif.snapshot.snapshot",
    "run_experiment": "fairlead.whatif.run.experiment_run",
    "seconds": "fairlead.engine.core.instant",
    "simulation_result": "fairlead.whatif.result.result_json",
    "what_if": "fairlead.whatif.question",
    "whatif_result": "fairlead.whatif.result.result_json",
}


def __getattr__(name: str) -> Any:
    """Import a public name only when it is first used, so that programs start fast (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """Return all public names, so that help() and completion list them all."""
    return __all__
