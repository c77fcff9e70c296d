"""LOCAL_API_SERVER: the API server's registry, plus warnings about kinds without a controller."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.registry.strategies.table import STRATEGIES

_AUTOSCALERS: Final = "horizontalpodautoscalers.autoscaling"


def _autoscaler_warnings(old: Json | None, _: Json) -> Iterator[str]:
    if old is None:
        yield "HorizontalPodAutoscalers are stored, but nothing here acts on them"


LOCAL_API_SERVER: Final = replace(
    API_SERVER,
    strategies={
        **STRATEGIES,
        _AUTOSCALERS: replace(STRATEGIES[_AUTOSCALERS], warnings=_autoscaler_warnings),
    },
)
