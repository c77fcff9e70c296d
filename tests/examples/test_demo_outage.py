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
    text = " ".join(done.stdout.split())
    assert "1,147 pods of 1,147 workloads are displaced and run again within 20m21s" in text
    assert "1,940 more pods are down with their nodes and come back after 20m01s" in text
    assert "evicted (taint unreachable)" in text
    assert '"outage":{' in (tmp_path / "openb-outage.html").read_text()
