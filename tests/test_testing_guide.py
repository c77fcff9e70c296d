"""The code blocks of docs/testing.md are a test suite that passes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

GUIDE = Path(__file__).parents[1] / "docs" / "testing.md"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.mark.long
def test_the_test_suite_of_the_guide_passes(pytester) -> None:
    blocks = BLOCK.findall(GUIDE.read_text())
    pytester.makepyfile("\n\n".join(blocks))
    # A run in this process would import Fairlead a second time, which breaks later tests.
    run = pytester.runpytest_subprocess("--strict-markers")
    run.assert_outcomes(passed=len(blocks))
