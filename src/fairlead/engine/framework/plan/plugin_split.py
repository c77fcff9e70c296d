"""PluginSplit: a profile's Filter and Score plugins, split into cached and uncached plugins.

The split depends on the pod's `Shape`. For example, a volume plugin has the locality CLUSTER: its
results depend on objects besides the pod, the node and the node's pods. So its results are not
cached, nor are those of the Filters after it. But the volume plugins do not run for pods without
volumes. For such pods, the results of the Filters after the volume plugins can be cached.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable

from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality, Normalization
from fairlead.engine.framework.points import FilterPoint, ScorePoint, ShapeKeyed
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.state.shape import Shape


class PluginSplit:
    """The cached and uncached plugins of a framework for pods of one `Shape`.

    The plugins in `idle`, which skip pods of that shape, are left out. Filters are cached up to the
    first CLUSTER plugin. So the cached Filters are NODE and ROW plugins, and no uncached Filter
    precedes a cached one. Therefore, the first plugin in configured order that rejects a node
    provides the reported rejection. `wider_filters` are the CLUSTER plugins among the
    uncached Filters. `local_names` are the names of the cached plugins. The PreFilter and PreScore
    methods of the cached plugins run once per shape. `uncached_names` are the names of the uncached
    Filters and of the plugins with PreFilterExtensions. If a cycle skips all plugins in
    `uncached_names`, only cached Filters run in this cycle.
    """

    def __init__(self, framework: Framework, idle: Collection[str] = ()) -> None:
        self.idle = tuple(idle)
        filters = [point for point in framework.filters if point.name not in idle]
        self.static_filters = _leading(filters, (Locality.NODE,))
        cached = _leading(filters, (Locality.NODE, Locality.ROW))
        self.row_filters = cached[len(self.static_filters) :]
        self.cluster_filters = filters[len(cached) :]
        trackers = framework.moved_pod_trackers(CycleState())
        self.uncached_names = frozenset(p.name for p in (*self.cluster_filters, *trackers))
        self.wider_filters = [p for p in self.cluster_filters if p.locality is Locality.CLUSTER]
        self.static_scorers: list[ScorePoint] = []
        self.row_scorers: list[ScorePoint] = []
        self.normalized_scorers: list[ScorePoint] = []
        self.cluster_scorers: list[ScorePoint] = []
        for point in framework.scorers:
            if point.name not in idle:
                self._list_for(point).append(point)
        self.local_scorers = (*self.static_scorers, *self.row_scorers, *self.normalized_scorers)
        static = [point.plugin for point in self.static_filters]
        static += [point.plugin for point in (*self.static_scorers, *self.normalized_scorers)]
        keyed = [plugin for plugin in static if isinstance(plugin, ShapeKeyed)]
        self._has_static_key = len(keyed) == len(static)
        self._shape_keys = [plugin.shape_key for plugin in keyed]
        self.local_names = {p.name for p in cached} | {p.name for p in self.local_scorers}
        self.pre_filters = [p for p in framework.pre_filters if p.name not in idle]
        self.cluster_pre_filters = [
            plugin for plugin in self.pre_filters if plugin.name not in self.local_names
        ]

    def static_key(self, shape: Shape) -> Hashable | None:
        """Return a key for `shape`.

        Shapes with equal keys get equal results from every NODE plugin (`Locality.NODE`). Returns
        None if a NODE plugin has no `shape_key`. Such a plugin may read any part of a shape.
        """
        if not self._has_static_key:
            return None
        return (self.idle, *(shape_key(shape) for shape_key in self._shape_keys))

    def _list_for(self, point: ScorePoint) -> list[ScorePoint]:
        match point.locality, point.normalization:
            case Locality.NODE, Normalization.NONE:
                return self.static_scorers
            case Locality.NODE, Normalization.SCALED | Normalization.REVERSED:
                return self.normalized_scorers
            case Locality.ROW, Normalization.NONE:
                return self.row_scorers
            case _:
                return self.cluster_scorers


def _leading(filters: list[FilterPoint], kinds: tuple[Locality, ...]) -> list[FilterPoint]:
    count = 0
    while count < len(filters) and filters[count].locality in kinds:
        count += 1
    return filters[:count]
