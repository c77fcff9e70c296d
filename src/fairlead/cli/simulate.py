"""`fairlead simulate`: a scenario, run in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from fairlead.cli.options import DEFAULT_OUTPUTS, OutputOptions, named, whole_number

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
    outputs: OutputOptions = DEFAULT_OUTPUTS,
) -> int:
    """Run a scenario and print what came of it.

    SCENARIO is a YAML file that names a cluster (files, a trace, or generated nodes), timed
    events, a duration, a seed and outputs; docs/scenarios.md has every field. Text output comes
    with an HTML report, fairlead-simulate.html. Options override the scenario's own.

    Try:

        fairlead simulate examples/priorities/scenario.yaml

        fairlead simulate examples/openb/scenario.yaml --snapshot after.json

        fairlead simulate scenario.yaml --seed 7 -o json --commands commands.jsonl

    Parameters
    ----------
    scenario
        A YAML file.
    """
    from fairlead.cli.simulating import answer_simulation

    return answer_simulation(scenario, seed, snapshot, outputs)
