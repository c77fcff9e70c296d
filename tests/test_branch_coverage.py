"""Branch coverage of the packages that make decisions: at least 95 % of the branches of each.

Only the tests of these packages are measured, in two parallel processes: their unit tests, and the
recorded sessions of kube-batch and timelines of the node lifecycle controller.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parent.parent
PERCENT_MIN: Final = 95.0
AREAS: Final = {
    name: f"src/fairlead/{name}/"
    for name in (
        "api",
        "engine/batch",
        "engine/nodelifecycle",
        "engine/plugins",
        "engine/scheduling",
        "engine/state",
    )
}
HALVES: Final = (
    ("unit/api", "unit/engine/scheduling", "unit/engine/core"),
    (
        "unit/engine/batch",
        "unit/engine/configuration",
        "unit/engine/framework",
        "unit/engine/nodelifecycle",
        "unit/engine/plugins",
        "unit/engine/state",
        "unit/engine/test_batch.py",
        "unit/engine/test_devices.py",
        "unit/engine/test_displacement_graph.py",
        "unit/engine/test_engine.py",
        "unit/engine/test_gang_preparations.py",
        "unit/engine/test_outage.py",
        "golden/test_kubebatch.py",
        "golden/test_nodelifecycle.py",
    ),
)
SECONDS_MAX: Final = 1_500


def coverage(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "coverage", *map(str, arguments)]


def measured(folder: Path) -> dict[str, Any]:
    """Return the coverage of both halves of the tests by file, from coverage's JSON report."""
    environment = {key: value for key, value in os.environ.items() if "PYTEST" not in key}
    runs = [
        subprocess.Popen(
            [
                *coverage("run", f"--data-file={folder / f'part.{number}'}", "-m"),
                *("pytest", "-q", "-p", "no:cacheprovider"),
                *(f"tests/{path}" for path in half),
            ],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number, half in enumerate(HALVES)
    ]
    for run in runs:
        said, _ = run.communicate(timeout=SECONDS_MAX)
        assert run.returncode == 0, said[-4_000:]
    data, report = f"--data-file={folder / 'all'}", folder / "report.json"
    subprocess.run(coverage("combine", "-q", data, *folder.glob("part.*")), cwd=ROOT, check=True)
    subprocess.run(coverage("json", "-q", data, "-o", report), cwd=ROOT, check=True)
    files: dict[str, Any] = json.loads(report.read_text())["files"]
    return files


@pytest.mark.long
def test_branch_coverage_of_deciding_packages_is_high_enough(tmp_path):
    if find_spec("coverage") is None and not os.environ.get("CI"):
        pytest.skip("needs coverage")
    branches: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    missing: dict[str, list[str]] = {area: [] for area in AREAS}
    for path, found in measured(tmp_path).items():
        area = next(name for name, prefix in AREAS.items() if path.startswith(prefix))
        branches[area] += found["summary"]["num_branches"]
        taken[area] += found["summary"]["covered_branches"]
        missing[area] += [f"{path}:{start} -> {end}" for start, end in found["missing_branches"]]
    percent = {area: 100 * taken[area] / branches[area] for area in AREAS}
    print({area: round(one, 2) for area, one in percent.items()})
    low = {area: missing[area] for area, one in percent.items() if one < PERCENT_MIN}
    assert not low, f"{percent}\n" + "\n".join(line for lines in low.values() for line in lines)
