"""Tools for tests of plugins, operators and clusters: builders, scenes and local clusters.

docs/testing.md and docs/python-api.md are the guides. A name is imported from its module on first
use, so that `import fairlead.testing` is cheap (pytest imports it in every run).

Fairlead runs without this package, except for the command `fairlead torture`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fairlead.testing.batch_builders import make_gang, make_group, make_queue, make_task
    from fairlead.testing.batch_scene import BatchScene
    from fairlead.testing.builders import make_budget, make_node, make_pod
    from fairlead.testing.cluster.start import start_cluster
    from fairlead.testing.cluster.test_cluster import TestCluster
    from fairlead.testing.device_builders import (
        make_device,
        make_device_class,
        make_resource_claim,
        make_slice,
    )
    from fairlead.testing.plugin_scene import PluginScene
    from fairlead.testing.refusal import RefusedError
    from fairlead.testing.storage_builders import make_claim, make_storage_class, make_volume

__all__ = [
    "BatchScene",
    "PluginScene",
    "RefusedError",
    "TestCluster",
    "make_budget",
    "make_claim",
    "make_device",
    "make_device_class",
    "make_gang",
    "make_group",
    "make_node",
    "make_pod",
    "make_queue",
    "make_resource_claim",
    "make_slice",
    "make_storage_class",
    "make_task",
    "make_volume",
    "start_cluster",
]

_MODULES: Final = {
    "BatchScene": "batch_scene",
    "PluginScene": "plugin_scene",
    "RefusedError": "refusal",
    "TestCluster": "cluster.test_cluster",
    "make_budget": "builders",
    "make_claim": "storage_builders",
    "make_device": "device_builders",
    "make_device_class": "device_builders",
    "make_gang": "batch_builders",
    "make_group": "batch_builders",
    "make_node": "builders",
    "make_pod": "builders",
    "make_queue": "batch_builders",
    "make_resource_claim": "device_builders",
    "make_slice": "device_builders",
    "make_storage_class": "storage_builders",
    "make_task": "batch_builders",
    "make_volume": "storage_builders",
    "start_cluster": "cluster.start",
}


def __getattr__(name: str) -> Any:
    """Import a public name from its module (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """Return all public names: help() and completion also show names that are not imported yet."""
    return __all__
