"""What tests of clusters, operators and plugins are written with.

Law: nothing here is needed to run Fairlead.
"""

from __future__ import annotations

from fairlead.testing.builders import make_budget, make_node, make_pod
from fairlead.testing.plugin_scene import PluginScene
from fairlead.testing.refusal import RefusedError

__all__ = [
    "PluginScene",
    "RefusedError",
    "make_budget",
    "make_node",
    "make_pod",
]
