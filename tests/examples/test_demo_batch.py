"""`make demo-batch`: the comparison of the results of several policies."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BATCH = Path(__file__).parents[2] / "examples" / "openb-batch"


def result(median_s, lost):
    waits = [
        {"queue": queue, "gangs": 4, "started": 3, "median_s": median_s, "p90_s": None}
        for queue in ("production", "students")
    ]
    gangs = {"gangs": 8, "finished": 5, "waits": waits, "incomplete_hours": {}}
    return {"gangs": {**gangs, "lost_hours": {"openb/gpu-milli": lost}}}


def test_the_policies_are_compared_on_a_page_with_links_to_their_reports(tmp_path):
    files = {"fairlead": result(60, 7_000), "kube-batch": result(120, 0)}
    paths = []
    for policy, value in files.items():
        paths.append(tmp_path / f"openb-batch-{policy}.json")
        paths[-1].write_text(json.dumps(value))
    page = tmp_path / "openb-batch.html"
    command = [sys.executable, BATCH / "table.py", page, *paths]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    best = "production gets its share soonest under fairlead: half of its gangs start within 1 min."
    assert best in printed
    shown = page.read_text()
    assert best in shown
    for policy in files:
        assert f'<a href="openb-batch-{policy}.html">{policy}</a>' in shown
        assert f"<td>students</td><td>{policy}</td>" in shown
