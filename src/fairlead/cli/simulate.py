"""`fairlead simulate`: a scenario, run in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from fairlead.cli.batch_options import BatchConfig, BatchPlugins
from fairlead.cli.options import DEFAULT_OUTPUTS, OutputOptions, Plugins, named, whole_number
from fairlead.cli.outage_options import NO_FLAGS, ControllerOptions

DEFAULT_REPORT: Final = "fairlead-simulate.html"


def simulate(
    scenario: str,
    /,
    *,
    seed: Annotated[
        int | None,
        Parameter(
            help="Settles what is left to chance (default: the scenario's).", converter=whole_number
        ),
    ] = None,
    snapshot: Annotated[
        Path | None,
        named("FILE.json", "Write the cluster at the end to FILE.json, as kubectl would print it."),
    ] = None,
    metrics: Annotated[
        Path | None,
        named("FILE", "Write the scheduler's metrics to FILE, in Prometheus' text format."),
    ] = None,
    plugin: Plugins = (),
    batch_config: BatchConfig = None,
    batch_plugin: BatchPlugins = (),
    profile_plugins: Annotated[
        bool, Parameter(help="Print how long each scheduler plugin took.", negative=())
    ] = False,
    outputs: OutputOptions = DEFAULT_OUTPUTS,
    controllers: ControllerOptions = NO_FLAGS,
) -> int:
    """Run a scenario and print what came of it.

    SCENARIO is a YAML file that names a cluster (files, a trace, or generated nodes), timed
    events, a duration, a seed and outputs; docs/scenarios.md has every field. Text output comes
    with an HTML report, fairlead-simulate.html. Options override the scenario's own.

    Try:

        fairlead simulate examples/priorities/scenario.yaml

        fairlead simulate examples/openb/scenario.yaml --snapshot after.json

        fairlead simulate scenario.yaml --seed 7 -o json --commands commands.jsonl

        fairlead simulate scenario.yaml --node-monitor-grace-period 40s --node-eviction-rate 0.5

        fairlead simulate scenario.yaml --plugin cost.py:NodePrice=5 --profile-plugins

    Parameters
    ----------
    scenario
        A YAML file.
    """
    from fairlead.cli.simulating import Request, answer_simulation

    request = Request(
        scenario,
        seed,
        plugin,
        snapshot,
        metrics,
        profile_plugins,
        jobs=(batch_config, batch_plugin),
        controllers=controllers,
    )
    return answer_simulation(request, outputs)
