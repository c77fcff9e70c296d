"""Campaign: runs the scenarios of consecutive seeds, up to a limit or the first broken `Law`."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from time import perf_counter

from msgspec import Struct, field

from fairlead.engine.core.instant import to_seconds
from fairlead.testing.torture.law import Law
from fairlead.testing.torture.run import Result, Violation, run
from fairlead.testing.torture.scenario_generator import draw

# One run in this many is repeated, to compare the commands.
REPEAT_EVERY = 20


class CampaignSummary(Struct):
    """The totals of a campaign."""

    runs: int = 0
    seconds: float = 0.0  # real time
    # Counts what happened, by names such as `starts`.
    tally: Counter[str] = field(default_factory=Counter)
    # The number of checks of each `Law`, by its name.
    checked: Counter[str] = field(default_factory=Counter)
    virtual_ns: int = 0  # virtual time in nanoseconds
    failed: Result | None = None  # the result of the first run that broke a `Law`

    @property
    def cluster_hours(self) -> float:
        """Virtual time of all runs, in hours."""
        return to_seconds(self.virtual_ns) / 3_600

    @property
    def faults(self) -> int:
        """Number of commands that got a fault."""
        return sum(count for name, count in self.tally.items() if name.startswith("fault "))

    def add(self, result: Result) -> None:
        """Add the totals of one run."""
        self.runs += 1
        self.tally += result.tally
        self.checked += result.checked
        self.virtual_ns += result.virtual_ns
        if result.failure is not None and self.failed is None:
            self.failed = result


def run_seed(seed: int) -> Result:
    """Run the scenario that `seed` determines, and return its result.

    If `seed` is a multiple of REPEAT_EVERY, run the scenario twice. The result is a failure if the
    commands of the two runs differ.
    """
    result = run(draw(seed))
    if seed % REPEAT_EVERY == 0 and result.failure is None:
        result.checked[Law.DETERMINISM.name] += 1
        if run(draw(seed)).digest != result.digest:
            message = f"two runs of seed {seed} differ"
            result.failure = Violation(Law.DETERMINISM, message, result.virtual_ns)
    return result


def torture(
    seed: int,
    *,
    hours: float,
    runs: int | None = None,
    jobs: int = 1,
    on_run: Callable[[CampaignSummary], None] = lambda _: None,
) -> CampaignSummary:
    """Run `seed` and the following seeds for `hours` of real time, but at most `runs` seeds.

    If `runs` is None, only the time is limited. `jobs` is the number of processes that run seeds in
    parallel. The results are counted in the order of the seeds. The campaign also ends at the first
    seed whose run breaks a `Law`. `on_run` is called with the totals after each counted result.
    """
    start, summary = perf_counter(), CampaignSummary()
    with closing(_results(seed, jobs)) as results:
        for result in results:
            summary.add(result)
            summary.seconds = perf_counter() - start
            on_run(summary)
            is_over = summary.seconds >= hours * 3_600 or summary.runs == runs
            if is_over or summary.failed is not None:
                break
    return summary


def _results(seed: int, jobs: int) -> Generator[Result]:
    """Yield the results of `seed` and all following seeds, in the order of the seeds."""
    seeds = _from(seed)
    if jobs == 1:
        yield from map(run_seed, seeds)
        return
    # "spawn": a forked process would inherit the caller's threads' locks.
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        pending = [pool.apply_async(run_seed, (next(seeds),)) for _ in range(2 * jobs)]
        while True:
            yield pending.pop(0).get()
            pending.append(pool.apply_async(run_seed, (next(seeds),)))


def _from(seed: int) -> Iterator[int]:
    while True:
        yield seed
        seed += 1
