"""EventLog: the events of the autoscaler, as RecordEvent commands.

upstream: utils/kubernetes/events.go, clusterstate/utils/logging.go: LogEventRecorder
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import Node, Pod
from fairlead.engine.core.command import Command, ObjectRef, RecordEvent

NORMAL: Final = "Normal"
WARNING: Final = "Warning"
COMPONENT: Final = "cluster-autoscaler"


class EventLog:
    """Appends the autoscaler's events to a list of commands, as RecordEvent commands."""

    def __init__(self, commands: list[Command], namespace: str, status_config_map: str) -> None:
        """Create a log that appends its events to `commands`.

        Events about the autoscaler itself refer to the ConfigMap `status_config_map` in
        `namespace`.
        """
        self._commands = commands
        self._namespace = namespace
        self._status = ObjectRef("ConfigMap", namespace, status_config_map)

    def about(self, config_map: str) -> EventLog:
        """Return a log whose events about the autoscaler refer to the ConfigMap `config_map`."""
        return EventLog(self._commands, self._namespace, config_map)

    def on_pod(self, pod: Pod, type_: str, reason: str, message: str) -> None:
        """Record an event about `pod`; `type_` is Normal or Warning."""
        meta = pod.metadata
        self._add(ObjectRef("Pod", meta.namespace, meta.name, meta.uid), type_, reason, message)

    def on_node(self, node: Node, type_: str, reason: str, message: str) -> None:
        """Record an event about `node`; `type_` is Normal or Warning."""
        ref = ObjectRef("Node", "", node.metadata.name, node.metadata.uid)
        self._add(ref, type_, reason, message)

    def on_status(self, type_: str, reason: str, message: str) -> None:
        """Record an event about the autoscaler itself, on the status ConfigMap.

        `type_` is Normal or Warning.
        """
        self._add(self._status, type_, reason, message)

    def _add(self, ref: ObjectRef, type_: str, reason: str, message: str) -> None:
        self._commands.append(RecordEvent(ref, type_, reason, reason, message, COMPONENT))
