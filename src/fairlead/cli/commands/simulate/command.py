"""`fairlead simulate`: runs a scenario in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fairlead.cli.options.controller import NO_FLAGS, ControllerOptions
from fairlead.cli.options.log import NO_DECISION_LOG, DecisionLogOptions
from fairlead.cli.options.output import DEFAULT_OUTPUTS, OutputOptions
from fairlead.cli.options.parameter import Names, integer, named, repeatable
from fairlead.cli.options.plugin import AllowExtenders, BatchConfig, BatchPlugins, Plugins
from fairlead.cli.options.release import NO_RELEASE, ReleaseOptions


def simulate(
    scenario: str,
    /,
    *,
    seed: Annotated[
        int | None,
        Parameter(
            help="Seed for tie-breaking and other random choices (default: the seed in the "
            "scenario).",
            converter=integer,
        ),
    ] = None,
    snapshot: Annotated[
        Path | None,
        named(
            "FILE.json",
            "Write the cluster's objects at the end of the simulation to FILE.json, as kubectl get "
            "-o json prints them.",
        ),
    ] = None,
    metrics: Annotated[
        Path | None,
        named("FILE", "Write the scheduler's metrics to FILE in the Prometheus text format."),
    ] = None,
    overwrite: Annotated[
        bool,
        Parameter(
            help="Allow the scenario to write its outputs outside the current directory, and to "
            "replace files that Fairlead did not write.",
            negative=(),
        ),
    ] = False,
    fail_on: Annotated[
        Names,
        repeatable(
            "CONDITION",
            "Exit with status 3 if CONDITION is true. A condition can describe pods, for example "
            "priority>=1000, namespace=store, name=web-* or labels.app=web. Such a condition is "
            "true if a pod that it describes was displaced: preempted, evicted, or on a node that "
            "was deleted. Other conditions have a name, such as loop, which is true if pods are "
            "displaced again and again (docs/results.md).",
        ),
    ] = (),
    plugin: Plugins = (),
    allow_extenders: AllowExtenders = False,
    batch_config: BatchConfig = None,
    batch_plugin: BatchPlugins = (),
    profile_plugins: Annotated[
        bool, Parameter(help="Print the time spent in each scheduler plugin.", negative=())
    ] = False,
    outputs: OutputOptions = DEFAULT_OUTPUTS,
    controllers: ControllerOptions = NO_FLAGS,
    release: ReleaseOptions = NO_RELEASE,
    log: DecisionLogOptions = NO_DECISION_LOG,
) -> int:
    """Run a scenario in virtual time and print the result.

    SCENARIO is a YAML file that describes a cluster, timed events, a duration, a seed and outputs.
    The cluster consists of manifest files, a recorded trace or generated nodes. docs/scenarios.md
    explains every field. Options of this command override the settings in the scenario. With text
    output, an HTML report is written to fairlead-simulate.html, or to the file that the scenario or
    --report names.

    Try:

        fairlead simulate examples/priorities/scenario.yaml
        fairlead simulate examples/openb/scenario.yaml --snapshot after.json
        fairlead simulate scenario.yaml --seed 7 -o json --commands commands.jsonl
        fairlead simulate scenario.yaml --node-monitor-grace-period 40s --node-eviction-rate 0.5
        fairlead simulate examples/reclaim-loop/scenario.yaml --fail-on loop
        fairlead simulate scenario.yaml --plugin cost.py:NodePrice=5 --profile-plugins

    Parameters
    ----------
    scenario
        The scenario file (docs/scenarios.md).
    """
    from fairlead.cli.commands.simulate.run import SimulationRequest, run_simulation

    request = SimulationRequest(
        scenario,
        seed,
        plugin,
        snapshot,
        metrics,
        profile_plugins,
        overwrite,
        batch=(batch_config, batch_plugin),
        controllers=controllers,
        release=release,
        log=log,
        fail_on=fail_on,
        allow_extenders=allow_extenders,
    )
    return run_simulation(request, outputs)
