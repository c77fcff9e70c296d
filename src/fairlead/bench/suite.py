"""Runs each workload in its own process, so that peak memory and caches are separate."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Final

from msgspec.structs import asdict

from fairlead.api.json import Json
from fairlead.bench.autoscaler_workloads import AUTOSCALING_WORKLOADS, measure_autoscaling
from fairlead.bench.measure import measure
from fairlead.bench.measurement import IncompleteRunError, Measurement
from fairlead.bench.outage import OUTAGE_WORKLOADS, measure_outage
from fairlead.bench.what_if import WHAT_IF_WORKLOADS, measure_what_if
from fairlead.bench.workloads import WORKLOADS
from fairlead.worlds.gc_thresholds import collect_rarely
from fairlead.worlds.huge_pages import use_huge_pages

NAMES: Final = (*WORKLOADS, *OUTAGE_WORKLOADS, *WHAT_IF_WORKLOADS, *AUTOSCALING_WORKLOADS)
_LONG: Final = {
    *(name for name, one in WORKLOADS.items() if one.is_long),
    *(name for name, one in WHAT_IF_WORKLOADS.items() if one.is_large),
}
DEFAULT_NAMES: Final = tuple(name for name in NAMES if name not in _LONG)


class WorkloadFailedError(RuntimeError):
    """Raised if a workload could not be measured; the message is one line."""


def measure_apart(name: str) -> Json:
    """Run the workload `name` in its own process; return the fields of its Measurement.

    `name` is one of NAMES. Raises WorkloadFailedError if the run failed.
    """
    command = [sys.executable, "-m", "fairlead.bench.suite", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if done.returncode:
        last_line = done.stderr.strip().rpartition("\n")[2]
        raise WorkloadFailedError(last_line or f"exit status {done.returncode}")
    found: Json = json.loads(done.stdout)
    return found


def measure_here(name: str) -> Measurement:
    """Run the workload `name` in this process.

    Raises IncompleteRunError if the run did not do the work to be measured.
    """
    if name in OUTAGE_WORKLOADS:
        return measure_outage(OUTAGE_WORKLOADS[name])
    if name in WHAT_IF_WORKLOADS:
        return measure_what_if(WHAT_IF_WORKLOADS[name])
    if name in AUTOSCALING_WORKLOADS:
        return measure_autoscaling(AUTOSCALING_WORKLOADS[name])
    return measure(WORKLOADS[name])


def _main(name: str) -> int:
    collect_rarely()
    use_huge_pages()
    try:
        sys.stdout.write(json.dumps(asdict(measure_here(name))))
    except IncompleteRunError as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1]))
