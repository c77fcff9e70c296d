"""The suite of the example operator, run as its reader would run it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

OPERATOR = Path(__file__).parents[2] / "examples" / "operator"


def test_the_operators_suite_passes(tmp_path) -> None:
    """From anywhere, with nothing but what is installed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(OPERATOR)]
    done = subprocess.run(
        [*command, f"--rootdir={OPERATOR}", "-c", "/dev/null"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"^5 passed", done.stdout, re.MULTILINE), done.stdout
