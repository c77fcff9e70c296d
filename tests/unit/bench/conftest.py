"""Excludes the objects of other tests from the garbage collections before a measurement."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(autouse=True)
def frozen():
    """Excludes existing objects: `measure` collects garbage, which takes seconds late in a run."""
    gc.freeze()
    yield
    gc.unfreeze()
