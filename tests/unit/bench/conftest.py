"""Keeps garbage collections and their settings within the test of a measurement."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(autouse=True)
def frozen():
    """Excludes existing objects: `measure` collects garbage, which takes seconds late in a run."""
    thresholds = gc.get_threshold()  # `fairlead bench` sets its own
    gc.freeze()
    yield
    gc.set_threshold(*thresholds)
