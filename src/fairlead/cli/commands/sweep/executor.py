"""Executors of a sweep's cases: processes on this machine, or a Dask cluster.

Each executor yields (case number, result), in the order in which the cases end. With each case, the
executor submits the severity of the worst case so far, which the function `known_worst` returns.
Submitted cases may wait while others run. At any time, at most `_IN_FLIGHT` cases are submitted for
each process, or at most `_IN_FLIGHT_ON_DASK` cases to a Dask cluster.
"""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import islice
from typing import Any, Final

from fairlead.whatif.input.error import InputError
from fairlead.whatif.run.parallel.forked_call import usable_cores
from fairlead.whatif.sweep.case import Case
from fairlead.whatif.sweep.case_run import (
    CaseResult,
    KnownWorst,
    ScenarioFiles,
    run_case,
    run_with_files,
)

Results = Iterator[tuple[int, CaseResult]]
Executor = Callable[[str, Sequence[Case], ScenarioFiles, Callable[[], KnownWorst]], Results]

DASK: Final = "dask://"
_PROCESSES: Final = re.compile(r"processes(?::([1-9]\d{0,3}))?")
_CONNECT_S: Final = 10
# Cases that are submitted for each process in advance, so that no process waits.
_IN_FLIGHT: Final = 4
_IN_FLIGHT_ON_DASK: Final = 1_000


def parse_place(text: str) -> Executor:
    """Return the executor for `text`, the value of `--on`. Raises InputError."""
    if text.startswith(DASK) and len(text) > len(DASK):
        return partial(_on_dask, f"tcp://{text.removeprefix(DASK)}")
    found = _PROCESSES.fullmatch(text)
    if found is None:
        raise InputError("--on", f"{text!r} is not processes, processes:N or dask://HOST:PORT")
    return partial(_in_processes, int(found[1]) if found[1] else usable_cores())


def _in_processes(
    count: int,
    source: str,
    cases: Sequence[Case],
    _: ScenarioFiles,
    known_worst: Callable[[], KnownWorst],
) -> Results:
    if count == 1:
        for case in cases:
            yield case.number, run_case(source, case, known_worst())
        return
    # New processes, instead of forked ones, have no threads and no open files of this process.
    context = multiprocessing.get_context("spawn")
    waiting, running = iter(cases), dict[Future[CaseResult], int]()
    with ProcessPoolExecutor(min(count, len(cases)), mp_context=context) as pool:

        def submit(most: int) -> None:
            for case in islice(waiting, most):
                running[pool.submit(run_case, source, case, known_worst())] = case.number

        try:
            submit(count * _IN_FLIGHT)
            while running:
                ended = next(as_completed(running))
                yield running.pop(ended), ended.result()
                submit(1)
        except BrokenProcessPool:
            problem = (
                "a process ended without a result; it may have run out of memory; use fewer "
                "processes, such as processes:1"
            )
            raise InputError("--on", problem) from None
        except BaseException:  # a signal, or a failed case; the pool would wait for running cases
            for process in multiprocessing.active_children():
                process.terminate()
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _on_dask(
    address: str,
    source: str,
    cases: Sequence[Case],
    files: ScenarioFiles,
    known_worst: Callable[[], KnownWorst],
) -> Results:
    try:
        from distributed import Client
        from distributed import as_completed as dask_completed
    except ImportError:
        problem = "needs the library distributed; install Fairlead with the extra `sweep`"
        raise InputError("--on", problem) from None
    try:
        client = Client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as cause:
        raise InputError("--on", f"no Dask scheduler at {address}: {cause}") from None
    with client:
        sent = client.scatter(files, broadcast=True, hash=False)
        waiting, running = iter(cases), dict[Any, int]()
        completed = dask_completed(loop=client.loop)

        def submit(most: int) -> None:
            for case in islice(waiting, most):
                future = client.submit(
                    run_with_files, sent, source, case, known_worst(), pure=False
                )
                running[future] = case.number
                completed.add(future)

        submit(_IN_FLIGHT_ON_DASK)
        for ended in completed:
            try:
                result = ended.result()
            except Exception as cause:  # noqa: BLE001 - whatever a worker or the connection raised
                problem = f"case {running[ended]:,} failed on the cluster: {cause}"
                raise InputError("--on", problem) from None
            yield running.pop(ended), result
            ended.release()
            submit(1)
