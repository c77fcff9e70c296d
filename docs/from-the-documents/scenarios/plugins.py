"""Plugins of the examples about what plugins may answer."""

from __future__ import annotations

from fairlead import plugin


class FilterFails:
    """Its filter ends with an error."""

    name = "FilterFails"

    def filter(
        self, state: plugin.CycleState, pod: plugin.PodInfo, node: plugin.NodeInfo
    ) -> plugin.Status | None:
        """Return an error for every node."""
        del state, pod, node
        return plugin.error("the filter is broken")


class NoRoom:
    """A PostFilter plugin that finds no room."""

    name = "NoRoom"

    def post_filter(
        self, state: plugin.CycleState, pod: plugin.PodInfo, diagnosis: plugin.Diagnosis
    ) -> plugin.PostFilterResult:
        """Answer Unschedulable."""
        del state, pod, diagnosis
        return plugin.PostFilterResult(plugin.unschedulable("no room by other means"))


class PostFilterFails:
    """A PostFilter plugin that ends with an error."""

    name = "PostFilterFails"

    def post_filter(
        self, state: plugin.CycleState, pod: plugin.PodInfo, diagnosis: plugin.Diagnosis
    ) -> plugin.PostFilterResult:
        """Answer with an error."""
        del state, pod, diagnosis
        return plugin.PostFilterResult(plugin.error("the post filter is broken"))


class Waits:
    """A Permit plugin that lets pods of priority 0 wait for ten minutes."""

    name = "Waits"

    def permit(
        self, state: plugin.CycleState, pod: plugin.PodInfo, node: str
    ) -> plugin.Wait | None:
        """Delay the binding of pods that may become victims."""
        del state, node
        return plugin.Wait(plugin.seconds(600)) if pod.priority == 0 else None
