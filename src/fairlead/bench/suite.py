"""Running workloads, each in a process of its own, so that peaks and caches are its own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from typing import Any

from fairlead.bench.measure import IncompleteRunError, measure
from fairlead.bench.workloads import WORKLOADS
from fairlead.worlds.collector import collect_rarely

Json = dict[str, Any]


class WorkloadFailedError(RuntimeError):
    """A workload that could not be measured; says why in one line."""


def measure_apart(name: str) -> Json:
    """The fields of `fairlead.bench.measure.Measurement` for the workload called `name`.

    Raises KeyError for an unknown name, WorkloadFailedError when the run failed.
    """
    command = [sys.executable, "-m", "fairlead.bench.suite", WORKLOADS[name].name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if done.returncode:
        last_line = done.stderr.strip().rpartition("\n")[2]
        raise WorkloadFailedError(last_line or f"exit status {done.returncode}")
    found: Json = json.loads(done.stdout)
    return found


def _measure_here(name: str) -> int:
    collect_rarely()
    try:
        sys.stdout.write(json.dumps(asdict(measure(WORKLOADS[name]))))
    except IncompleteRunError as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_measure_here(sys.argv[1]))
