"""Excludes the objects of other tests from the garbage collections before a measurement."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(autouse=True)
def frozen():
    """`measure` collects garbage first; late in a whole run, that takes seconds without this."""
    gc.freeze()
    yield
    gc.unfreeze()
