"""Karpenter's settings, from the Karpenter Deployment in the snapshot, otherwise the defaults.

A setting is an environment variable, such as PREFERENCE_POLICY, or the flag with the same name
(--preference-policy), which takes precedence. Values that Karpenter would refuse are ignored.

upstream: pkg/operator/options/options.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Any, Final

from msgspec.structs import replace

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, parse_duration
from fairlead.engine.autoscaling.karpenter.options import (
    BEST_EFFORT,
    IGNORE,
    RESPECT,
    STRICT,
    KarpenterOptions,
)
from fairlead.whatif.snapshot.installed_autoscaler import (
    InstalledContainer,
    installed_containers,
)
from fairlead.whatif.snapshot.manifest import Manifest

_NAME: Final = "karpenter"
_NAMES: Final = (
    "BATCH_IDLE_DURATION",
    "BATCH_MAX_DURATION",
    "FEATURE_GATES",
    "IGNORE_DRA_REQUESTS",
    "MIN_VALUES_POLICY",
    "PREFERENCE_POLICY",
)
_GATES: Final = {
    "NodeOverlay": "node_overlay",
    "ReservedCapacity": "reserved_capacity",
    "SpotToSpotConsolidation": "spot_to_spot_consolidation",
    "StaticCapacity": "static_capacity",
}
_NOT_SIMULATED: Final = ("NodeRepair",)
_POLICIES: Final = {
    "PREFERENCE_POLICY": ("preference_policy", (RESPECT, IGNORE)),
    "MIN_VALUES_POLICY": ("min_values_policy", (STRICT, BEST_EFFORT)),
}
_BATCHES: Final = {"BATCH_IDLE_DURATION": "batch_idle_s", "BATCH_MAX_DURATION": "batch_max_s"}
# as strconv.ParseBool reads them
_BOOLS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def karpenter_options(
    initial: Iterable[Manifest], *, has_overlays: bool, adds_overlays: bool, has_static: bool
) -> tuple[KarpenterOptions, list[str]]:
    """Return (the settings of the Karpenter in the cluster `initial`, notes about them).

    The feature gate NodeOverlay is on if the cluster's settings do not turn it off, because a
    change may create NodeOverlays. If some NodeOverlays come from a file (`adds_overlays`), the
    gate is always on. Notes name this gate only if the settings turn it on, or if it is off and
    there are NodeOverlays (`has_overlays`). If there are static NodePools (`has_static`), the gate
    StaticCapacity is on if the cluster's settings do not turn it off. If there is no Deployment of
    Karpenter, StaticCapacity is always on, because a change may create a static NodePool.
    """
    defaults = KarpenterOptions(node_overlay=True, static_capacity=has_static)
    found = next(_deployments(initial), None)
    if found is None:
        return replace(defaults, static_capacity=True), []
    name, stated = found
    gates = dict(_gates(stated.get("FEATURE_GATES", "")))
    if adds_overlays:
        gates["NodeOverlay"] = True
    options: KarpenterOptions = replace(defaults, **dict(_fields(stated, gates)))
    notes = []
    noted = replace(options, node_overlay=gates.get("NodeOverlay", has_overlays))
    usual = set(_described(replace(defaults, node_overlay=has_overlays)))
    different = [one for one in _described(noted) if one not in usual]
    if different:
        notes.append(
            f"Karpenter's settings are those of Deployment {name}: {', '.join(different)}."
        )
    on = [gate for gate in _NOT_SIMULATED if gates.get(gate)]
    if on:
        notes.append(f"{name} has the feature gate {' and '.join(on)}, which is not simulated.")
    return options, notes


def _deployments(initial: Iterable[Manifest]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield (namespace/name, settings) of each Karpenter Deployment that has settings."""
    for manifest, container in installed_containers(initial):
        stated = dict(_settings(container)) if _NAME in container.image else {}
        if stated:
            yield f"{manifest.ref.namespace}/{manifest.ref.name}", stated


def _settings(container: InstalledContainer) -> Iterator[tuple[str, str]]:
    """Yield (variable name, value) for each setting: first the environment, then the flags."""
    for one in container.env or ():
        if one.name in _NAMES and one.value:
            yield one.name, one.value
    words = container.command_line
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        flag, equals, value = word.partition("=")
        name = flag.lstrip("-").replace("-", "_").upper()
        if flag.startswith("-") and name in _NAMES:
            yield name, value if equals else following


def _gates(text: str) -> Iterator[tuple[str, bool]]:
    for pair in text.split(","):
        gate, _, value = pair.partition("=")
        if value.strip() in _BOOLS:
            yield gate.strip(), _BOOLS[value.strip()]


def _fields(stated: Mapping[str, str], gates: Mapping[str, bool]) -> Iterator[tuple[str, Any]]:
    """Yield (field of KarpenterOptions, value) for each valid setting.

    `stated` maps environment variables to values, and `gates` maps feature gates to their state.
    """
    for gate, field in _GATES.items():
        if gate in gates:
            yield field, gates[gate]
    for name, (field, choices) in _POLICIES.items():
        if stated.get(name) in choices:
            yield field, stated[name]
    if stated.get("IGNORE_DRA_REQUESTS") in _BOOLS:
        yield "ignore_dra_requests", _BOOLS[stated["IGNORE_DRA_REQUESTS"]]
    for name, field in _BATCHES.items():
        try:
            duration = parse_duration(stated.get(name, ""))
        except ValueError:
            continue
        if duration > 0:
            yield field, duration / NANOSECONDS_PER_SECOND


def _described(options: KarpenterOptions) -> list[str]:
    """Return the settings as texts such as `PREFERENCE_POLICY=Ignore`."""
    gates = {gate: str(getattr(options, field)).lower() for gate, field in _GATES.items()}
    policies = {name: getattr(options, field) for name, (field, _) in _POLICIES.items()}
    batches = {name: f"{getattr(options, field):g}s" for name, field in _BATCHES.items()}
    ignored = {"IGNORE_DRA_REQUESTS": str(options.ignore_dra_requests).lower()}
    every = {**gates, **policies, **batches, **ignored}
    return [f"{name}={value}" for name, value in every.items()]
