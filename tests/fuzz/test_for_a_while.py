"""`make fuzz`, for as long as the time limit of `make test-long` permits."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest
from tests.fuzz.run import fuzz

MINUTES = 2


@pytest.mark.long
def test_fuzzing_finds_no_failure_in_some_minutes():
    if find_spec("schemathesis") is None and not os.environ.get("CI"):
        pytest.skip("needs schemathesis")
    report = fuzz(MINUTES, seed=1)
    print("\n".join(report.lines()))
    assert not report.problems
    assert report.requests > 100  # requests were sent, however slow the machine is
