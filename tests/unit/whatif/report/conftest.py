"""Report data for these tests, loaded by path because test folders are not packages."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def small():
    return runpy.run_path(str(HERE / "sample_report.py"))["small_report"]()


@pytest.fixture(scope="session")
def large():
    return runpy.run_path(str(HERE / "sample_report.py"))["large_report"]()


@pytest.fixture(scope="session")
def hostile():
    return runpy.run_path(str(HERE / "hostile_report.py"))["hostile_report"]()
