"""AutoscalingOptions: the command line flags of Cluster Autoscaler, with upstream's defaults.

A field has the name of its flag, with underscores instead of hyphens. Durations are in nanoseconds.

upstream: config/flags/flags.go, config/autoscaling_options.go
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.timestamp import parse_duration
from fairlead.engine.core.instant import DurationNs

GIB: Final = 1 << 30
_SECOND: Final[DurationNs] = 1_000_000_000
_MINUTE: Final[DurationNs] = 60 * _SECOND
_INTEGER_MAX: Final = (1 << 63) - 1


class OptionError(ValueError):
    """A flag is unknown or has an invalid value; the message names the flag."""


class Limits(Struct, frozen=True):
    """The minimum and maximum amount of one resource in the whole cluster."""

    minimum: int
    maximum: int


class NodeGroupOptions(Struct, frozen=True, kw_only=True):
    """The options that a provider may override for a single node group.

    upstream: config/autoscaling_options.go: NodeGroupAutoscalingOptions
    """

    scale_down_utilization_threshold: float = 0.5
    scale_down_gpu_utilization_threshold: float = 0.5
    scale_down_unneeded_time: DurationNs = 10 * _MINUTE
    scale_down_unready_time: DurationNs = 20 * _MINUTE
    max_node_provision_time: DurationNs = 15 * _MINUTE
    max_node_startup_time: DurationNs = 15 * _MINUTE
    ignore_daemonsets_utilization: bool = False
    zero_or_max_node_scaling: bool = False

    def overridden(self, overrides: Mapping[str, Any]) -> NodeGroupOptions:
        """Return a copy of these options with `overrides`, a map of flag names to values.

        Raises OptionError for an unknown flag or an invalid value.
        """
        return replace(self, **_parsed(overrides, NodeGroupOptions)) if overrides else self


class AutoscalingOptions(Struct, frozen=True, kw_only=True):
    """Settings of Cluster Autoscaler; each field is named after its flag.

    `memory_total` is in bytes. `defaults` are the options of every node group that does not
    override them. `cloud_provider` is upstream's name of the provider, such as "azure". If
    `cloud_provider` is "", no provider-specific rules apply.
    """

    expander: tuple[str, ...] = ("least-waste",)
    scan_interval: DurationNs = 10 * _SECOND
    new_pod_scale_up_delay: DurationNs = 0
    expendable_pods_priority_cutoff: int = -10
    max_nodes_total: int = 0
    max_nodes_per_scaleup: int = 1000
    cores_total: Limits = Limits(0, 320_000)
    memory_total: Limits = Limits(0, 6_400_000 * GIB)
    gpu_total: Mapping[str, Limits] = field(default_factory=dict)
    cloud_provider: str = ""
    balance_similar_node_groups: bool = False
    balancing_ignore_label: tuple[str, ...] = ()
    balancing_label: tuple[str, ...] = ()
    memory_difference_ratio: float = 0.015
    max_allocatable_difference_ratio: float = 0.05
    max_free_difference_ratio: float = 0.05
    max_total_unready_percentage: float = 45.0
    ok_total_unready_count: int = 3
    initial_node_group_backoff_duration: DurationNs = 5 * _MINUTE
    max_node_group_backoff_duration: DurationNs = 30 * _MINUTE
    node_group_backoff_reset_timeout: DurationNs = 180 * _MINUTE
    force_ds: bool = False
    salvo_scale_up: bool = False
    fastpath_binpacking_enabled: bool = False
    enforce_node_group_min_size: bool = False
    scaleup_simulation_for_skipped_node_groups_enabled: bool = False
    scale_from_unschedulable: bool = False
    startup_taint: tuple[str, ...] = ()
    startup_taint_prefix: tuple[str, ...] = ()
    status_taint: tuple[str, ...] = ()
    ignore_taint: tuple[str, ...] = ()
    bypassed_scheduler_names: tuple[str, ...] = ()
    allowed_scheduler_names: tuple[str, ...] = ()
    force_delete_unregistered_nodes: bool = False
    force_delete_failed_nodes: bool = False
    scale_down_enabled: bool = True
    scale_down_unready_enabled: bool = True
    scale_down_delay_after_add: DurationNs = 10 * _MINUTE
    scale_down_delay_after_delete: DurationNs = 0
    scale_down_delay_after_failure: DurationNs = 3 * _MINUTE
    scale_down_delay_type_local: bool = False
    unremovable_node_recheck_timeout: DurationNs = 5 * _MINUTE
    ignore_mirror_pods_utilization: bool = False
    skip_nodes_with_system_pods: bool = True
    skip_nodes_with_local_storage: bool = True
    skip_nodes_with_custom_controller_pods: bool = True
    min_replica_count: int = 0
    # Upstream's spelling.
    blocking_system_pod_distruption_timeout: DurationNs = 60 * _MINUTE
    max_scale_down_parallelism: int = 10
    max_drain_parallelism: int = 1
    max_bulk_soft_taint_count: int = 10
    max_bulk_soft_taint_time: DurationNs = 3 * _SECOND
    max_graceful_termination_sec: int = 600
    max_pod_eviction_time: DurationNs = 2 * _MINUTE
    node_delete_delay_after_taint: DurationNs = 5 * _SECOND
    node_deletion_batcher_interval: DurationNs = 0
    node_deletion_delay_timeout: DurationNs = 2 * _MINUTE
    node_deletion_candidate_ttl: DurationNs = 0
    cordon_node_before_terminating: bool = True
    daemonset_eviction_for_empty_nodes: bool = False
    daemonset_eviction_for_occupied_nodes: bool = True
    drain_priority_config: tuple[tuple[int, int], ...] = ()
    write_status_configmap: bool = True
    status_config_map_name: str = "cluster-autoscaler-status"
    namespace: str = "kube-system"
    defaults: NodeGroupOptions = field(default_factory=NodeGroupOptions)


# The flags that may occur several times on a command line. Each occurrence adds values.
_REPEATED: Final = frozenset(
    {
        "allowed_scheduler_names",
        "balancing_ignore_label",
        "balancing_label",
        "bypassed_scheduler_names",
        "gpu_total",
        "ignore_taint",
        "startup_taint",
        "startup_taint_prefix",
        "status_taint",
    }
)


def is_repeated(flag: str) -> bool:
    """Return True if each occurrence of `flag` adds values to those of earlier occurrences.

    Returns False if the last occurrence replaces all earlier occurrences.
    """
    return _field_name(flag) in _REPEATED


def is_known(flag: str) -> bool:
    """Return whether there is an option for `flag`."""
    return _field_name(flag) in _types()


def is_switch(flag: str) -> bool:
    """Return whether `flag` is boolean. The word after a boolean flag is never its value."""
    return _types().get(_field_name(flag)) == "bool"


def _types() -> dict[str, Any]:
    return {**AutoscalingOptions.__annotations__, **NodeGroupOptions.__annotations__}


def parse_options(flags: Mapping[str, Any]) -> AutoscalingOptions:
    """Return the options that `flags` set, with upstream's default for each other option.

    `flags` maps flag names to values, as text or JSON. Raises OptionError for an unknown flag, an
    invalid value, or the expander grpc.
    """
    shared = {name: value for name, value in flags.items() if _field_name(name) in _GROUP_FIELDS}
    own = {name: value for name, value in flags.items() if name not in shared}
    options = AutoscalingOptions(
        **_parsed(own, AutoscalingOptions), defaults=NodeGroupOptions().overridden(shared)
    )
    _check_expanders(options.expander)
    return options


_EXPANDERS: Final = ("least-waste", "most-pods", "least-nodes", "price", "priority", "random")


def _check_expanders(names: tuple[str, ...]) -> None:
    for name in names:
        if name == "grpc":
            raise OptionError("expander: grpc calls an external server; choose another expander")
        if name not in _EXPANDERS:
            raise OptionError(f"expander: no expander {name!r}; known: {', '.join(_EXPANDERS)}")
    if len(set(names)) != len(names):
        raise OptionError(f"expander: {','.join(names)} names an expander twice")


def _field_name(flag: str) -> str:
    return flag.replace("-", "_")


_GROUP_FIELDS: Final = frozenset(NodeGroupOptions.__struct_fields__)


def _parsed(flags: Mapping[str, Any], owner: type[Struct]) -> dict[str, Any]:
    """Return {field name: parsed value} for `flags`.

    Each value is parsed to the type of its field in the class `owner`. Raises OptionError if
    `owner` has no such field, or if a value is invalid.
    """
    types = owner.__annotations__
    found: dict[str, Any] = {}
    for flag, value in flags.items():
        name = _field_name(flag)
        if name not in types or name == "defaults":
            if is_known(flag) and name != "defaults":
                raise OptionError(f"--{flag}: cannot be set for a single node group")
            known = (one.replace("_", "-") for one in types if one != "defaults")
            nearest = difflib.get_close_matches(flag, known, n=1)
            hint = f"; did you mean --{nearest[0]}?" if nearest else ""
            raise OptionError(f"no flag --{flag}{hint}")
        parse = _PARSERS.get(name, _TYPE_PARSERS.get(types[name], _text))
        try:
            found[name] = parse(value)
        except (ValueError, TypeError, AttributeError, OverflowError):
            expected = f"; expected {_EXPECTED[parse]}" if parse in _EXPECTED else ""
            raise OptionError(f"--{flag}: {value!r} is not a valid value{expected}") from None
    return found


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    words = {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}
    if str(value).lower() not in words:
        raise ValueError(value)
    return words[str(value).lower()]


def _duration(value: Any) -> DurationNs:
    return parse_duration(value)


def _interval(value: Any) -> DurationNs:
    interval = parse_duration(value)
    if interval <= 0:
        raise ValueError(value)
    return interval


def _names(value: Any) -> tuple[str, ...]:
    parts = value if isinstance(value, list) else str(value).split(",")
    return tuple(str(part).strip() for part in parts if str(part).strip())


def _text(value: Any) -> str:
    return str(value)


def _integer(value: Any) -> int:
    """Return `value` as a 64-bit integer. Raises ValueError for values such as 1.5 or true."""
    number = value if type(value) is int else int(str(value))
    if not -_INTEGER_MAX - 1 <= number <= _INTEGER_MAX:
        raise ValueError(value)
    return number


def _ratio(value: Any) -> float:
    """Return `value` as a finite number. Raises ValueError for values such as NaN."""
    if isinstance(value, bool) or not isfinite(number := float(value)):
        raise ValueError(value)
    return number


def _limits(value: Any) -> Limits:
    minimum, maximum = (_integer(part) for part in str(value).split(":"))
    if not 0 <= minimum <= maximum:
        raise ValueError(value)
    return Limits(minimum, maximum)


def _memory_limits(value: Any) -> Limits:
    limits = _limits(value)
    return Limits(limits.minimum * GIB, limits.maximum * GIB)


def _gpu_limits(value: Any) -> dict[str, Limits]:
    found = {}
    for text in value if isinstance(value, list) else str(value).split(","):
        kind, minimum, maximum = str(text).split(":")
        found[kind] = _limits(f"{minimum}:{maximum}")
    return found


def _priorities(value: Any) -> tuple[tuple[int, int], ...]:
    """Return the pairs (priority, seconds) of the text `priority:seconds,...`, sorted."""
    pairs = [str(part).split(":") for part in str(value).split(",") if part]
    return tuple(sorted((_integer(priority), _integer(grace)) for priority, grace in pairs))


_Parser = Callable[[Any], Any]
_PARSERS: Final[Mapping[str, _Parser]] = {
    "scan_interval": _interval,
    "cores_total": _limits,
    "memory_total": _memory_limits,
    "gpu_total": _gpu_limits,
    "drain_priority_config": _priorities,
}
_TYPE_PARSERS: Final[Mapping[str, _Parser]] = {
    "bool": _boolean,
    "int": _integer,
    "float": _ratio,
    "DurationNs": _duration,
    "tuple[str, ...]": _names,
}
_EXPECTED: Final[Mapping[_Parser, str]] = {
    _boolean: "true or false",
    _duration: "a duration such as 10m",
    _interval: "a duration of more than 0s, such as 10s",
    _integer: "an integer",
    _ratio: "a number",
    _limits: "MINIMUM:MAXIMUM",
    _memory_limits: "MINIMUM:MAXIMUM in GiB",
    _gpu_limits: "TYPE:MINIMUM:MAXIMUM",
    _priorities: "PRIORITY:SECONDS,...",
}
