"""The answer about a failed zone on a terminal of 80 columns."""

from __future__ import annotations

from pathlib import Path

from fairlead.cli.main import run
from fairlead.cli.output.console.screen import LINES_MAX

STORE = Path(__file__).parents[4] / "examples" / "store" / "store.yaml"


def test_a_failed_zone_fits_one_screen_with_every_workload(capsys, monkeypatch):
    """What is down, for how long, what is not back, and what to do next are in it."""
    monkeypatch.setenv("COLUMNS", "80")
    run(["whatif", str(STORE), "--fail-zone", "west-1b", "--for", "20m", "--no-report"])
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert len(lines) <= LINES_MAX
    # Names are complete if the output is not a terminal, so a line can be longer.
    assert max(len(line) for line in lines if str(STORE) not in line) <= 80
    for words in (
        "deploy/analytics/reports",
        "deploy/store/frontend",
        "deploy/store/search",
        "ds/kube-system/node-agent",
        "0 not back",
        "Back from 5m51s to 20m01s.",
        "Next: ask again with 4 more replicas of deploy/store/frontend, created 10m before",
    ):
        assert words in " ".join(text.split())
