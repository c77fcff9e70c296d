"""The engine's configuration for a scenario's options."""

from __future__ import annotations

from dataclasses import replace

from fairlead.engine.batch.configuration_file import shipped_configuration
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.instant import Instant
from fairlead.testing.torture.scenario import ControlPlaneOptions
from fairlead.worlds.local.control_plane import OBSERVED

_NS_PER_MS = 1_000_000


def engine_config(options: ControlPlaneOptions, seed: int, now: Instant) -> EngineConfig:
    """Return the configuration of an engine that starts at `now`."""
    kubelet = replace(
        OBSERVED.kubelet,
        start_delay=options.start_delay_ms * _NS_PER_MS,
        ready_delay=options.ready_delay_ms * _NS_PER_MS,
    )
    batch = shipped_configuration(options.batch) if options.batch else None
    return replace(OBSERVED, seed=seed, start=now, kubelet=kubelet, batch=batch)
