"""CI runs the tests on each version of Python that the package declares."""

from __future__ import annotations

import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent
PREFIX = "Programming Language :: Python :: 3."


def test_ci_runs_the_tests_on_each_declared_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = ["3." + one.removeprefix(PREFIX) for one in project["classifiers"] if PREFIX in one]
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    oldest = jobs["test"]["steps"][1]["with"]["python-version"]
    assert [oldest, *jobs["versions"]["strategy"]["matrix"]["python-version"]] == declared
    assert project["requires-python"] == f">={oldest}"
