"""docs/testing.md is true: its blocks are one test suite, and it passes."""

from __future__ import annotations

import re
from pathlib import Path

pytest_plugins = ["pytester"]

GUIDE = Path(__file__).parents[1] / "docs" / "testing.md"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_the_guide(pytester) -> None:
    blocks = BLOCK.findall(GUIDE.read_text())
    pytester.makepyfile("\n\n".join(blocks))
    # A run in this process would import Fairlead a second time, which breaks later tests.
    run = pytester.runpytest_subprocess("--strict-markers")
    run.assert_outcomes(passed=len(blocks))
