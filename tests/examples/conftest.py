"""The example plugins, loaded from their files as `--plugin` loads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead.whatif.configuration.plugin_source import find_class

PLUGINS = Path(__file__).parents[2] / "examples" / "plugins"


@pytest.fixture
def example() -> Callable[[str], type]:
    """`example("node_price.py:NodePrice")` returns the class."""
    return lambda source: find_class(str(PLUGINS / source))
