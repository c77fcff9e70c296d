"""`fairlead torture`: tests Fairlead itself under random workloads and faults in virtual time."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from fairlead.api.text.count import counted
from fairlead.cli.exit_code import DIFFERENCE
from fairlead.cli.options.parameter import integer
from fairlead.cli.output.console.terminal import stderr_console
from fairlead.whatif.input.error import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.testing.torture.campaign import CampaignSummary
    from fairlead.testing.torture.run import Result

SHRINK_S: Final = 300.0
HOURS_MAX: Final = 10_000
_OTHERS: Final = (
    "changes",
    "refused changes",
    "starts",
    "plugin raises",
    "plugin stalls",
    "extender wrong answers",
    "webhook calls",
    "webhook wrong answers",
    "events",
)


def torture(
    scenario: Path | None = None,
    /,
    *,
    seed: Annotated[int, Parameter(name="--seed", converter=integer)] = 1,
    hours: Annotated[float, Parameter(name="--hours")] = 0.5,
    runs: Annotated[int | None, Parameter(name="--runs", converter=integer)] = None,
    jobs: Annotated[int, Parameter(name="--jobs", converter=integer)] = 1,
    shrink: Annotated[bool, Parameter(name="--shrink")] = True,
) -> int:
    """Test Fairlead itself: a whole control plane under random workloads, changes and faults.

    For each seed, the command simulates one cluster of 20 nodes with all controllers. In the first
    hour of virtual time, clients change the cluster at random, and faults happen. About one in 11
    actions of the control plane has a fault. For example, the action is refused, delayed, performed
    but reported as failed, or performed twice. Watches break. The control plane is killed, and
    restarts from its store. Nodes fail, or are deleted and return with another capacity. Then the
    changes and the faults stop, so that the cluster can reach a stable state. After every action
    and at the end, the command checks the laws, which are the safety rules in docs/torture.md.

    If a law is broken, the command prints a scenario that breaks the law and contains only the
    necessary parts.

    Try:

        fairlead torture --seed 1 --hours 0.5 --jobs 2
        fairlead torture --seed 4711 --runs 1 > failure.yaml
        fairlead torture failure.yaml

    Parameters
    ----------
    scenario
        A file with a scenario that an earlier run printed. The command runs this scenario instead
        of random clusters.
    seed
        The seed of the first cluster. Each further cluster has the next integer as its seed.
    hours
        The real time, in hours, after which no further cluster is started.
    runs
        The largest number of clusters (default: as many as --hours allows).
    jobs
        The number of processes that run clusters in parallel.
    shrink
        After a failure, search for a smaller scenario that breaks the same law, for up to five
        minutes.
    """
    if scenario is not None:
        return _replay(scenario)
    if not 0 < hours <= HOURS_MAX:
        raise InputError("--hours", f"must be more than 0 and at most {HOURS_MAX:,}, not {hours:g}")
    for name, count in (("--runs", runs), ("--jobs", jobs)):
        if count is not None and count < 1:
            raise InputError(name, f"must be at least 1, not {count}")
    from fairlead.testing.torture.campaign import torture as run_campaign

    with stderr_console().status("starting") as status:
        summary = run_campaign(
            seed,
            hours=hours,
            runs=runs,
            jobs=jobs,
            on_run=lambda so_far: status.update(_line(so_far)),
        )
        failed = summary.failed
        if failed is not None and shrink:
            status.update(f"seed {failed.scenario.seed}: {_problem(failed)}; shrinking")
            failed = _shrunk(failed)
    if failed is None:
        print("\n".join(_report(summary)))
        return 0
    print("\n".join(f"# {line}" for line in (*_report(summary), f"failed: {_problem(failed)}")))
    _print_scenario(failed)
    return DIFFERENCE


def _replay(path: Path) -> int:
    from fairlead.testing.torture.run import run
    from fairlead.testing.torture.scenario import from_yaml

    try:
        scenario = from_yaml(path.read_text(encoding="utf-8"))
    except OSError as cause:
        raise InputError(str(path), cause.strerror or str(cause)) from None
    except ValueError as cause:
        raise InputError(str(path), f"not a torture scenario: {cause}") from None
    result = run(scenario)
    print(f"{path}: {_problem(result) if result.failure else 'every law holds'}")
    if result.failure is not None and result.failure.trace:
        print(result.failure.trace, file=sys.stderr)
    return DIFFERENCE if result.failure is not None else 0


def _shrunk(failed: Result) -> Result:
    from fairlead.testing.torture.shrinker import Shrinker

    deadline = perf_counter() + SHRINK_S
    return Shrinker(failed, is_over=lambda: perf_counter() > deadline).shrink()


def _print_scenario(failed: Result) -> None:
    from msgspec.structs import replace

    from fairlead.testing.torture.scenario import to_yaml

    print(to_yaml(replace(failed.scenario, faults=failed.faults)), end="")


def _problem(result: Result) -> str:
    failure = result.failure
    assert failure is not None
    return f"{failure.law}: {failure.message} (after {failure.at / 1e9:.1f} s)"


def _line(summary: CampaignSummary) -> str:
    commands = summary.tally["commands"]
    return f"{counted(summary.runs, 'seed')}, {commands:,} commands, {summary.faults:,} faults"


def _report(summary: CampaignSummary) -> list[str]:
    """Return the lines of the report about all runs."""
    tally = summary.tally
    speed = tally["commands"] / max(summary.seconds, 1e-9) * 3_600
    share = summary.faults / max(tally["commands"], 1)
    return [
        f"{_line(summary)}, {summary.cluster_hours:.1f} cluster-hours in {summary.seconds:.0f} s",
        f"{speed / 1e6:.2f} million commands an hour, {share:.1%} of them with a fault",
        *(_count_line(name, tally[name]) for name in _OTHERS),
        "faults of commands:",
        *_count_lines({kind: tally[f"fault {kind}"] for kind in _fault_kinds()}),
        "changes by clients and failures of nodes, watches and processes:",
        *_count_lines(
            {
                name.removeprefix("change "): count
                for name, count in sorted(tally.items())
                if name.startswith("change ")
            }
        ),
        "laws checked:",
        *_law_lines(summary),
    ]


def _fault_kinds() -> list[str]:
    from fairlead.testing.torture.scenario import FaultKind

    return sorted(FaultKind)


def _count_lines(counts: Mapping[str, int]) -> list[str]:
    return [_count_line(name, count) for name, count in counts.items()]


def _count_line(name: str, count: int) -> str:
    return f"  {name:<64}{count:>10,}"


def _law_lines(summary: CampaignSummary) -> list[str]:
    from fairlead.testing.torture.law import Law

    counts = {**{law.name: 0 for law in Law}, **summary.checked}
    counts[Law.NO_CRASH.name] = counts[Law.NO_LIVELOCK.name] = summary.runs
    return _count_lines({law.value: counts[law.name] for law in Law})
