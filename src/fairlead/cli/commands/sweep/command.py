"""The options of `fairlead sweep`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from fairlead.cli.options.output import AnswerOutput
from fairlead.cli.options.parameter import Names, integer, named, repeatable

DEFAULT_FOLDER: Final = Path("fairlead-sweep")


def sweep(
    scenario: str,
    /,
    *,
    vary: Annotated[
        Names,
        repeatable(
            "PATH=VALUES",
            "Run the scenario with each of these values of the field PATH. VALUES is a range "
            "(seed=0..49) or a list of values, for example cluster.generated.nodes=80,90,100 or "
            "events[0].for=5m,20m or settings.scheduler=old.yaml,new.yaml.",
        ),
    ] = (),
    lose: Annotated[
        Names,
        repeatable(
            "zone|node@TIME",
            "Run the scenario once without a failure, and once more for each zone (zone@10m) or "
            "each node (node@10m). In each further run, one zone or node fails at TIME and does "
            "not return.",
        ),
    ] = (),
    random: Annotated[
        int | None,
        Parameter(
            help="Run only N randomly chosen cases (default: all cases).",
            metavar="N",
            converter=integer,
        ),
    ] = None,
    random_seed: Annotated[
        int, Parameter(help="Seed for the random choice of --random.", converter=integer)
    ] = 0,
    rank_by: Annotated[
        str,
        named(
            "MEASURE",
            "Measure by which the cases are sorted (default: pending, the number of pending pods "
            "at the end). The case with the largest value is the worst. docs/sweep.md lists the "
            "measures.",
        ),
    ] = "pending",
    fail_on: Annotated[
        Names,
        repeatable(
            "CONDITION",
            "Exit with status 3 if CONDITION is true for at least one case. CONDITION compares a "
            "measure of the case with a number: 'pending>0', 'evicted>=10'. docs/sweep.md lists "
            "the measures.",
        ),
    ] = (),
    out: Annotated[
        Path, named("DIR", "Directory to write the results to (default: fairlead-sweep).")
    ] = DEFAULT_FOLDER,
    parquet: Annotated[
        bool,
        Parameter(
            help="Also write cases.parquet to the directory of --out; needs pyarrow.", negative=()
        ),
    ] = False,
    on: Annotated[
        str,
        named(
            "PLACE",
            "Where to run the cases: processes (default: one process for each core), processes:N "
            "(N processes) or dask://HOST:PORT (a Dask cluster).",
        ),
    ] = "processes",
    output: AnswerOutput = "text",
) -> int:
    """Run a scenario many times with varied fields, seeds or failures, and compare the results.

    Every combination of the values of --vary and --lose is a case. By default, all cases run; with
    --random, only a sample of them runs. The command writes its results to the directory of --out.
    The file cases.csv contains a row for each case, and the directory cases/ contains the full
    result of each case. The file report.html is the report of the sweep, and the file worst.html is
    the full report of the worst case (see --rank-by). To continue an interrupted sweep, run the
    same command again. Only the cases without results in the directory then run. However, if the
    scenario, a file that it names, an installed plugin, or the version of Fairlead has changed, all
    cases run again.

    Try:

        fairlead sweep scenario.yaml --vary seed=0..49
        fairlead sweep scenario.yaml --lose zone@10m --vary cluster.generated.nodes=80,90,100
        fairlead sweep scenario.yaml --vary seed=0..999 --random 100 --fail-on 'pending>0'
        fairlead sweep scenario.yaml --vary seed=0..999 --on dask://scheduler:8786

    Parameters
    ----------
    scenario
        A scenario file (docs/scenarios.md).
    """
    from fairlead.cli.commands.sweep.run import SweepRequest, run_sweep

    request = SweepRequest(
        scenario=scenario,
        vary=vary,
        lose=lose,
        sample=random,
        sample_seed=random_seed,
        rank_by=rank_by,
        fail_on=fail_on,
        folder=out,
        parquet=parquet,
        place=on,
        output=output,
    )
    return run_sweep(request)
