"""independent_runs: runs simulations on several cores; no result depends on another."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Final, TypeVar

from fairlead.whatif.run.parallel.forked_call import can_fork, each_in_children, usable_cores
from fairlead.whatif.run.progress import PhasesInTurn, Progress

Result = TypeVar("Result")

# Each process loads the cluster itself, so with more processes, a large cluster would need many GB.
_PROCESSES_MAX: Final = 4
# The largest number of runs in one process. A run with 6,000 pods takes 4 s and leaves 50 MB in the
# memory of its process. A new process costs 10 ms.
_RUNS_MAX: Final = 4


def independent_runs(
    run: Callable[[int, Progress], Result],
    names: Sequence[str],
    progress: Progress,
    *,
    in_one_process: bool,
) -> Generator[Result, None, None]:
    """Yield the result of one run for each of `names`, in order.

    `run` gets the number of the run (the first is 0) and the progress to report to. On the
    terminal, the name of the first run that has not ended is shown. Results must not depend on
    earlier runs, and must be picklable. If `in_one_process` is set, all runs take place in this
    process. This is necessary with extenders, because their connections cannot be shared.
    """
    phases = PhasesInTurn(progress)

    def call(number: int) -> Result:
        return run(number, phases.phase(number, names[number]))

    numbers = range(len(names))
    if in_one_process or usable_cores() == 1 or not can_fork():
        for number in numbers:
            yield call(number)
            phases.end_phase()
        return
    with closing(each_in_children(call, numbers, _PROCESSES_MAX, _RUNS_MAX)) as results:
        for result in results:
            phases.end_phase()
            yield result
