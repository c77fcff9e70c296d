"""build_scheduler_plugin: the scheduler's plugins by name, current ones and those of 1.16."""

from __future__ import annotations

from fairlead.engine.batch.session.plugin import BatchHandle
from fairlead.engine.framework.interface import Plugin
from fairlead.engine.plugins.registry import IN_TREE
from fairlead.engine.plugins.release_1_16.registry import release_1_16


def build_scheduler_plugin(name: str, handle: BatchHandle) -> Plugin:
    """The plugin called `name` with its default arguments. Raises KeyError."""
    factory = release_1_16(handle.sums).get(name) or IN_TREE[name]
    return factory(handle, {})
