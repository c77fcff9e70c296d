"""`make demo-outage`: a third of a production cluster fails; takes about a minute."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

OPENB = Path(__file__).parents[2] / "examples" / "openb"


@pytest.mark.long
def test_the_demo_shows_evicted_pods_and_writes_its_report(tmp_path: Path) -> None:
    """The demo first fills the cluster, because no snapshot exists yet."""
    fairlead = tmp_path / "fairlead"
    fairlead.write_text(f'#!/bin/sh\nexec {sys.executable} -m fairlead.cli "$@"\n')
    fairlead.chmod(0o755)
    done = subprocess.run(
        [OPENB / "demo-outage", fairlead],
        env={**os.environ, "OUT": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "508 nodes failed" in done.stdout
    tainted = "In zone a, 115 nodes tainted from 50s to 19m50s; "
    assert f"{tainted}the eviction rate allows 115" in done.stdout
    assert "other pods preempted to make room" in done.stdout
    assert '"outage":{' in (tmp_path / "openb-outage.html").read_text()
