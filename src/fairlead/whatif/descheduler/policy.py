"""DeschedulerPolicy: the descheduler's own configuration file, descheduler/v1alpha2.

Fields without effect in a simulation, such as fields for metrics of a live cluster, are refused.
Plugins run in the order of the file.

upstream: pkg/apis/descheduler/v1alpha2/types.go, pkg/api/v1alpha2/types.go
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeVar

import msgspec

from fairlead.api.json import Json
from fairlead.api.objects import LabelSelector
from fairlead.whatif.input.document import Document, read_one
from fairlead.whatif.input.error import InputError, known_names
from fairlead.whatif.input.strict_form import decode_strictly

API_VERSION: Final = "descheduler/v1alpha2"
KIND: Final = "DeschedulerPolicy"
EVICTOR: Final = "DefaultEvictor"

Percentages = dict[str, float]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
Args = TypeVar("Args", bound=msgspec.Struct)


class _Form(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Base class of the parts of a policy: fields in camelCase, unknown fields are errors."""


class Namespaces(_Form, frozen=True, kw_only=True):
    """A choice of namespaces: the names in `include`, or all names that are not in `exclude`."""

    include: list[str] = []
    exclude: list[str] = []

    def has(self, namespace: str) -> bool:
        """Return whether `namespace` is included, and not excluded."""
        return (not self.include or namespace in self.include) and namespace not in self.exclude


class PriorityThreshold(_Form, frozen=True, kw_only=True):
    """The lowest priority at which pods are protected from eviction.

    The priority is `value`, or the value of the PriorityClass `name`.
    """

    value: int | None = None
    name: str = ""


class PodProtections(_Form, frozen=True, kw_only=True):
    """The default protections that are disabled, and the extra protections that are enabled."""

    default_disabled: list[str] = []
    extra_enabled: list[str] = []


class EvictorArgs(_Form, frozen=True, kw_only=True):
    """The arguments of DefaultEvictor, named as in the policy file."""

    node_selector: str = ""
    evict_failed_bare_pods: bool = False
    evict_local_storage_pods: bool = False
    evict_daemon_set_pods: bool = False
    evict_system_critical_pods: bool = False
    ignore_pvc_pods: bool = False
    ignore_pods_without_pdb: bool = msgspec.field(name="ignorePodsWithoutPDB", default=False)
    label_selector: LabelSelector | None = None
    priority_threshold: PriorityThreshold | None = None
    node_fit: bool = False
    min_replicas: Count = 0
    min_pod_age: str | None = None
    pod_protections: PodProtections = PodProtections()


class EvictionLimits(_Form, frozen=True, kw_only=True):
    """The maximum number of pods that a strategy evicts from a node; None for no limit."""

    node: Count | None = None


class UtilizationArgs(_Form, frozen=True, kw_only=True):
    """The arguments of LowNodeUtilization and HighNodeUtilization.

    `thresholds` and `target_thresholds` are percentages from 0 to 100, by resource.
    """

    thresholds: Percentages
    target_thresholds: Percentages = {}
    use_deviation_thresholds: bool = False
    number_of_nodes: Count = 0
    evictable_namespaces: Namespaces = Namespaces()
    eviction_limits: EvictionLimits = EvictionLimits()
    eviction_modes: list[str] = []


class SelectorArgs(_Form, frozen=True, kw_only=True):
    """The arguments that select the pods a strategy examines; each subclass may add arguments."""

    namespaces: Namespaces = Namespaces()
    label_selector: LabelSelector | None = None


class DuplicatesArgs(_Form, frozen=True, kw_only=True):
    """The arguments of RemoveDuplicates."""

    namespaces: Namespaces = Namespaces()
    exclude_owner_kinds: list[str] = []


class ViolatingNodeAffinityArgs(SelectorArgs, frozen=True, kw_only=True):
    """The arguments of RemovePodsViolatingNodeAffinity."""

    node_affinity_type: list[str]


class ViolatingNodeTaintsArgs(SelectorArgs, frozen=True, kw_only=True):
    """The arguments of RemovePodsViolatingNodeTaints; taints are `key` or `key=value`."""

    include_prefer_no_schedule: bool = False
    excluded_taints: list[str] = []
    included_taints: list[str] = []


class SpreadArgs(SelectorArgs, frozen=True, kw_only=True):
    """The arguments of RemovePodsViolatingTopologySpreadConstraint."""

    constraints: tuple[str, ...] = ("DoNotSchedule",)
    topology_balance_node_fit: bool = True


class LifeTimeArgs(SelectorArgs, frozen=True, kw_only=True):
    """The arguments of PodLifeTime."""

    max_pod_life_time_seconds: Count
    states: list[str] = []
    including_init_containers: bool = False


class RestartsArgs(SelectorArgs, frozen=True, kw_only=True):
    """The arguments of RemovePodsHavingTooManyRestarts."""

    pod_restart_threshold: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
    including_init_containers: bool = False
    states: list[str] = []


class FailedArgs(SelectorArgs, frozen=True, kw_only=True):
    """The arguments of RemoveFailedPods."""

    exclude_owner_kinds: list[str] = []
    reasons: list[str] = []
    exit_codes: list[int] = []
    including_init_containers: bool = False
    min_pod_lifetime_seconds: Count | None = None


# The extension point of each strategy, and the form of its arguments.
DESCHEDULE: Final[dict[str, type[msgspec.Struct]]] = {
    "PodLifeTime": LifeTimeArgs,
    "RemoveFailedPods": FailedArgs,
    "RemovePodsHavingTooManyRestarts": RestartsArgs,
    "RemovePodsViolatingInterPodAntiAffinity": SelectorArgs,
    "RemovePodsViolatingNodeAffinity": ViolatingNodeAffinityArgs,
    "RemovePodsViolatingNodeTaints": ViolatingNodeTaintsArgs,
}
BALANCE: Final[dict[str, type[msgspec.Struct]]] = {
    "HighNodeUtilization": UtilizationArgs,
    "LowNodeUtilization": UtilizationArgs,
    "RemoveDuplicates": DuplicatesArgs,
    "RemovePodsViolatingTopologySpreadConstraint": SpreadArgs,
}


class PluginConfig(_Form, frozen=True, kw_only=True):
    """The arguments of one plugin."""

    name: str
    args: Json = {}


class PluginSet(_Form, frozen=True, kw_only=True):
    """The plugins of one extension point."""

    enabled: list[str] = []
    disabled: list[str] = []


class Plugins(_Form, frozen=True, kw_only=True):
    """The plugins of a profile by extension point."""

    deschedule: PluginSet = PluginSet()
    balance: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    pre_eviction_filter: PluginSet = msgspec.field(
        name="preEvictionFilter", default_factory=PluginSet
    )
    sort: PluginSet = PluginSet()


class DeschedulerProfile(_Form, frozen=True, kw_only=True):
    """One profile: its plugins and their arguments."""

    name: str = ""
    plugin_config: list[PluginConfig] = []
    plugins: Plugins = Plugins()


class DeschedulerPolicy(_Form, frozen=True, kw_only=True):
    """The content of a policy file; the three maximum numbers of evictions are for one run."""

    api_version: str
    kind: str
    profiles: list[DeschedulerProfile] = []
    node_selector: str = ""
    max_no_of_pods_to_evict_per_node: Count | None = None
    max_no_of_pods_to_evict_per_namespace: Count | None = None
    max_no_of_pods_to_evict_total: Count | None = None


_CAMEL: Final = {"pre_eviction_filter": "preEvictionFilter"}


class PolicyFile:
    """A policy whose plugins and arguments have been checked."""

    def __init__(self, source: str, policy: DeschedulerPolicy) -> None:
        """Check `policy`, which was read from `source`. Raises InputError."""
        self.source = source
        self.policy = policy
        for number, profile in enumerate(policy.profiles):
            self._check(f"profiles[{number}]", profile)

    def args(self, profile: DeschedulerProfile, name: str, form: type[Args]) -> Args:
        """Return the arguments of the plugin `name` in `profile`. Raises InputError."""
        number = self.policy.profiles.index(profile)
        for at, config in enumerate(profile.plugin_config):
            if config.name == name:
                where = f"profiles[{number}].pluginConfig[{at}].args"
                return decode_strictly(Document(self.source, config.args), form, where)
        return decode_strictly(Document(self.source, {}), form, f"profiles[{number}] {name}")

    def _check(self, where: str, profile: DeschedulerProfile) -> None:
        known = {**DESCHEDULE, **BALANCE}
        points = (("deschedule", profile.plugins.deschedule, DESCHEDULE),
                  ("balance", profile.plugins.balance, BALANCE))  # fmt: skip
        for point, plugins, forms in points:
            for name in plugins.enabled:
                if name not in forms:
                    problem = f"unknown strategy {name!r}; {known_names(name, forms)}"
                    field = f"{where}.plugins.{point}.enabled"
                    raise InputError(self.source, problem, field=field)
                self.args(profile, name, forms[name])
        every: dict[str, type[msgspec.Struct]] = {**known, EVICTOR: EvictorArgs}
        for point in ("filter", "pre_eviction_filter", "sort"):
            for name in getattr(profile.plugins, point).enabled:
                if name != EVICTOR:
                    problem = f"unknown plugin {name!r}; known: {EVICTOR}"
                    field = f"{where}.plugins.{_CAMEL.get(point, point)}.enabled"
                    raise InputError(self.source, problem, field=field)
        seen: set[str] = set()
        for config in profile.plugin_config:
            if config.name not in every:
                problem = f"unknown plugin {config.name!r}; {known_names(config.name, known)}"
                raise InputError(self.source, problem, field=f"{where}.pluginConfig")
            if config.name in seen:
                problem = f"{config.name} is configured twice"
                raise InputError(self.source, problem, field=f"{where}.pluginConfig")
            seen.add(config.name)
            self.args(profile, config.name, every[config.name])
        self.args(profile, EVICTOR, EvictorArgs)


def read_policy(path: str) -> PolicyFile:
    """Return the policy in the file `path`. Raises InputError."""
    document = read_one(path, KIND)
    value: Any = document.value
    if not isinstance(value, dict) or (value.get("apiVersion"), value.get("kind")) != (
        API_VERSION,
        KIND,
    ):
        raise InputError(path, f"is not a {KIND} of {API_VERSION}")
    return PolicyFile(path, decode_strictly(document, DeschedulerPolicy))
