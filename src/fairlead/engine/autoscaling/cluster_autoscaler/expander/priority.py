"""The priority expander: ranks node groups by the priorities in a ConfigMap.

upstream: expander/priority/priority.go
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from fairlead.api.text.yaml_documents import YamlError, documents
from fairlead.engine.autoscaling.cluster_autoscaler.event import WARNING, EventLog
from fairlead.engine.autoscaling.cluster_autoscaler.expander.option import Option

CONFIG_MAP: Final = "cluster-autoscaler-priority-expander"
_NOTHING_MATCHED: Final = -1
_EMPTY: Final = (
    "priority configuration in cluster-autoscaler-priority-expander configmap is empty; "
    "please provide valid configuration"
)
_UNREADABLE: Final = "Can't parse YAML with priorities in the configmap"
_CONVERSION: Final = "error converting YAML to JSON"
_NONE_MATCHED: Final = (
    "Priority expander: no priorities info found for any of the expansion options. "
    "No options filtered."
)
Priorities = dict[int, list[re.Pattern[str]]]


class PriorityMapError(ValueError):
    """The ConfigMap cannot be parsed; the error text is upstream's."""


class HighestPriority:
    """Keeps the options whose group has the highest priority."""

    def __init__(
        self, text: str | None, events: EventLog, names: Mapping[str, str] | None = None
    ) -> None:
        """Keep `text`, the ConfigMap's `data.priorities`: lists of patterns by priority.

        `text` is None if there is no ConfigMap. Warnings about the ConfigMap are recorded in
        `events`. `names` maps group ids to names. The patterns are matched against the name of a
        group, or against its id if `names` does not contain the id.
        """
        self._names = names or {}
        self._text = text
        self._events = events.about(CONFIG_MAP)

    def best_options(self, options: Sequence[Option]) -> list[Option]:
        """Return the options whose groups have the highest priority among the groups of `options`.

        Returns all options if no group has a priority, or the ConfigMap is missing or invalid.
        """
        priorities = self._priorities()
        if priorities is None:
            return list(options)
        highest = _NOTHING_MATCHED
        best: list[Option] = []
        for option in options:
            is_matched = False
            name = self._names.get(option.group.id, option.group.id)
            for priority, patterns in sorted(priorities.items()):
                if not any(pattern.search(name) for pattern in patterns):
                    continue
                is_matched = True
                if priority < highest:
                    continue
                if priority > highest:
                    highest, best = priority, []
                if not best or best[-1] is not option:
                    best.append(option)
            if not is_matched:
                message = (
                    f"Priority expander: node group {name} not found in priority "
                    "expander configuration. The group won't be used."
                )
                self._events.on_status(WARNING, "PriorityConfigMapNotMatchedGroup", message)
        if not best:
            self._events.on_status(WARNING, "PriorityConfigMapNoGroupMatched", _NONE_MATCHED)
            return list(options)
        return best

    def _priorities(self) -> Priorities | None:
        if self._text is None:
            return None
        try:
            return read_priorities(self._text)
        except PriorityMapError as problem:
            message = f"Wrong configuration for priority expander: {problem}. Ignoring update."
            self._events.on_status(WARNING, "PriorityConfigMapInvalid", message)
            return None


def priorities_in(data: object) -> str:
    """Return the text of the priorities in `data`, the data of a ConfigMap; "" if there is none."""
    return str(data.get("priorities", "")) if isinstance(data, dict) else ""


def read_priorities(text: str) -> Priorities:
    """Return the regular expressions for group ids or names, by priority.

    Raises PriorityMapError if `text` is empty or invalid.
    """
    if not text:
        raise PriorityMapError(_EMPTY)
    try:
        found = next(iter(documents(text)), None)
    except YamlError as cause:
        raise PriorityMapError(f"{_UNREADABLE}: {_CONVERSION}: {cause.upstream}") from None
    if not isinstance(found, dict):
        raise PriorityMapError(f"{_UNREADABLE}: not a mapping")
    priorities: Priorities = {}
    for key, patterns in found.items():
        if not re.fullmatch("-?[0-9]+", key) or not isinstance(patterns, list):
            raise PriorityMapError(f"{_UNREADABLE}: {key}")
        try:
            priorities[int(key)] = [re.compile(str(pattern)) for pattern in patterns]
        except re.error as cause:
            problem = f"Can't compile regexp rule for priority {key}: {cause}"
            raise PriorityMapError(problem) from None
    return priorities
