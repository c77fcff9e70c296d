"""LocalStrategies: upstream's strategies, and a word about kinds that nothing here acts on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.strategies.served import ServedStrategies

# Resources that no controller here looks at, where users would wait for one.
_UNATTENDED: Final = {
    "horizontalpodautoscalers.autoscaling": "HorizontalPodAutoscalers are stored, but nothing "
    "here acts on them",
}


class LocalStrategies(ServedStrategies):
    """What `fairlead up` does about each kind."""

    def warnings(self, kind: Kind, old: Json | None, new: Json) -> Iterable[str]:
        """What a client should know about `new`, which is valid."""
        yield from super().warnings(kind, old, new)
        told = _UNATTENDED.get(kind.resource)
        if old is None and told:
            yield told
