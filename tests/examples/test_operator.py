"""The test suite of the example operator, run as the documentation describes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

OPERATOR = Path(__file__).parents[2] / "examples" / "operator"


@pytest.mark.long
def test_the_operators_suite_passes(tmp_path) -> None:
    """It passes in any working directory, with only the installed packages."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(OPERATOR)]
    done = subprocess.run(
        [*command, "-p", "no:schemathesis", f"--rootdir={OPERATOR}", "-c", "/dev/null"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"^5 passed", done.stdout, re.MULTILINE), done.stdout
