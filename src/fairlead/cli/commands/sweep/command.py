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
            "Vary a field of the scenario: seed=0..49, cluster.generated.nodes=80,90,100, "
            "settings.scheduler=old.yaml,new.yaml, events[0].for=5m,20m.",
        ),
    ] = (),
    lose: Annotated[
        Names,
        repeatable(
            "zone|node@TIME",
            "Run the scenario without failures, and with each zone or node failing at TIME: "
            "zone@10m.",
        ),
    ] = (),
    random: Annotated[
        int | None,
        Parameter(
            help="Run N of the combinations, chosen at random (default: all).",
            metavar="N",
            converter=integer,
        ),
    ] = None,
    random_seed: Annotated[
        int, Parameter(help="Seed for the choice of --random.", converter=integer)
    ] = 0,
    rank_by: Annotated[
        str,
        named(
            "MEASURE",
            "The case with the largest value of this measure is the worst (default: pending).",
        ),
    ] = "pending",
    fail_on: Annotated[
        Names,
        repeatable("CONDITION", "Exit with 3 if a case fulfils it: pending>0, 'evicted>=10'."),
    ] = (),
    out: Annotated[
        Path, named("FOLDER", "Where to write the results (default: fairlead-sweep).")
    ] = DEFAULT_FOLDER,
    parquet: Annotated[
        bool, Parameter(help="Also write cases.parquet; needs pyarrow.", negative=())
    ] = False,
    on: Annotated[
        str,
        named(
            "PLACE",
            "Where to run: processes (default), processes:N for N of them, or dask://HOST:PORT, "
            "a Dask cluster.",
        ),
    ] = "processes",
    output: AnswerOutput = "text",
) -> int:
    """Run a scenario many times, with fields, seeds or failures varied, and compare.

    All combinations of the values run; with --random, a sample of them. FOLDER receives
    cases.csv (a row for each case), cases/ (the full results), report.html and worst.html (the
    worst case's own report). A sweep that was interrupted continues where it stopped: results in
    FOLDER are kept as long as scenario, values and files are the same.

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
