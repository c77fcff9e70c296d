"""Conditions: the settings that both runs of a what-if share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.engine.configuration.release import NEWEST
from fairlead.engine.core.instant import DurationNs, seconds
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.whatif.configuration.autoscaling.autoscaler import (
    NO_AUTOSCALING,
    OFF,
    AutoscaleOptions,
)
from fairlead.whatif.configuration.autoscaling.provider_settings import (
    DEFAULT_PROVIDER,
    ProviderSettings,
    provision_times,
)
from fairlead.whatif.configuration.batch.options import DEFAULT_BATCH_OPTIONS, BatchOptions
from fairlead.whatif.configuration.controller_manager import DEFAULT, controller_manager
from fairlead.whatif.configuration.release import (
    CURRENT_RELEASES,
    ReleaseChoice,
    Releases,
    read_release,
)
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.option_type import refuse_wrong_types, require_type
from fairlead.whatif.input.strict_form import field_duration
from fairlead.whatif.run.experiment import HORIZON_DEFAULT
from fairlead.whatif.snapshot.snapshot import Snapshot

SEEDS_MAX: Final = 1_000
DURATION_MIN: Final = seconds(0.001)


class Conditions(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """Settings that apply to both runs of a what-if, with and without the change.

    The function `conditions_of` makes conditions from the values of options.
    """

    seed: int = 0  # the first seed
    seeds: int = 1  # the number of seeds with which the what-if runs
    # Whether the answer gets next steps, some of which are tried in simulations.
    next_steps: bool = True
    # The maximum virtual time (ns) that a run lasts after the last step.
    horizon: DurationNs = HORIZON_DEFAULT
    node_lifecycle: NodeLifecycleConfig = DEFAULT  # the flags of the node controllers
    # The versions of the scheduler and of the node controllers.
    releases: Releases = CURRENT_RELEASES
    # The current KubeSchedulerConfiguration, None for kube-scheduler's defaults.
    config: str | None = None
    # The current scheduler plugins, as values of --plugin or as classes.
    plugin: tuple[str | type, ...] = ()
    allow_extenders: bool = False  # whether the scheduler may send requests to extenders
    batch: BatchOptions = DEFAULT_BATCH_OPTIONS  # the configuration of the batch scheduler
    instance_types: str | None = None  # the file with the types of new nodes
    # The time (ns) that every pod takes to start; if None, times from the dump are used.
    startup: DurationNs | None = None
    # Files of KWOK Stages, in addition to the Stages in the snapshot.
    kwok_stages: tuple[str, ...] = ()
    # The file with runtimes of pods, in addition to runtimes that the dump shows.
    runtimes: str | None = None
    # The autoscaler that adds and removes nodes in both runs.
    autoscale: AutoscaleOptions = NO_AUTOSCALING
    # How fast the cloud delivers machines to the autoscaler, and shortages of machines.
    provider: ProviderSettings = DEFAULT_PROVIDER
    load: str | None = None  # the file with the CPU and memory that workloads use over time

    def __post_init__(self) -> None:
        """Raise InputError if a value has the wrong type, or a duration is negative or too short.

        A duration of less than DURATION_MIN was probably meant in seconds. 0 is allowed.
        """
        refuse_wrong_types(self)
        for name in ("horizon", "startup"):
            duration = getattr(self, name)
            if duration is not None and duration < 0:
                raise InputError("Conditions", f"{duration} is negative", field=name)
            if duration and duration < DURATION_MIN:
                problem = f"{duration} ns is less than 1 ms; for seconds, use seconds({duration})"
                raise InputError("Conditions", problem, field=name)


def scheduler_arguments(conditions: Conditions) -> list[str]:
    """Return the command-line options that configure the current scheduler of `conditions`.

    `fairlead whatif` and `fairlead drain-plan` have all of these options. A plugin that is given as
    a class has no option.
    """
    words = ["--config", conditions.config] if conditions.config else []
    for one in conditions.plugin:
        words += ["--plugin", one] if isinstance(one, str) else []
    words += ["--allow-extenders"] if conditions.allow_extenders else []
    release = conditions.releases.general
    words += [] if release.version == NEWEST else ["--behave-like", release.version]
    gates = ",".join(f"{name}={str(on).lower()}" for name, on in sorted(release.gates.items()))
    return [*words, "--feature-gates", gates] if gates else words


def with_scheduler_arguments(snapshot: Snapshot, conditions: Conditions) -> Snapshot:
    """Return `snapshot`, changed so that printed commands name the schedulers of `conditions`."""
    return replace(
        snapshot,
        arguments=(*snapshot.arguments, *scheduler_arguments(conditions)),
        batch_arguments=conditions.batch.arguments,
    )


DEFAULT_CONDITIONS: Final = Conditions()
_NO_FLAGS: Final[Mapping[str, str]] = {}


def conditions_of(  # noqa: PLR0913 - the options of fairlead whatif
    *,
    behave_like: str = "",
    feature_gates: str | Mapping[str, bool] = "",
    flags: Mapping[str, str] = _NO_FLAGS,
    autoscale: str = OFF,
    node_groups: str = "",
    node_pools: str | None = None,
    instance_types: str | None = None,
    provision_time: tuple[str, ...] = (),
    horizon: str = "1h",
    startup_time: str = "",
    **fields: Any,
) -> Conditions:
    """Return the conditions that options of `fairlead whatif` describe.

    The arguments have the names and values of options: `autoscale="karpenter"`, `horizon="2h"`,
    `provision_time=("3m",)`. The options that are also flags of kube-controller-manager are in
    `flags`. The keys have no dashes at the beginning: `{"node-monitor-grace-period": "20s"}`.
    `fields` are further fields of Conditions. Raises InputError.
    """
    texts = {
        "behave_like": behave_like,
        "autoscale": autoscale,
        "node_groups": node_groups,
        "horizon": horizon,
        "startup_time": startup_time,
    }
    for name, text in texts.items():
        require_type("conditions_of", name, text, str)
    require_type("conditions_of", "provision_time", provision_time, tuple)
    require_type("conditions_of", "flags", flags, Mapping)
    require_type("conditions_of", "feature_gates", feature_gates, str | Mapping)
    for place, text in enumerate(provision_time):
        require_type("conditions_of", f"provision_time[{place}]", text, str)
    for name, text in flags.items():
        require_type("conditions_of", f"flags[{name!r}]", text, str)
    release = read_release(ReleaseChoice(behave_like, feature_gates))
    return Conditions(
        horizon=_duration("--horizon", horizon) or 0,
        releases=Releases(release, release),
        node_lifecycle=controller_manager(release, flags),
        autoscale=AutoscaleOptions(autoscale, node_groups, instance_types, node_pools),
        provider=provision_times(provision_time),
        instance_types=instance_types,
        startup=_duration("--startup-time", startup_time or None),
        **fields,
    )


def _duration(option: str, text: str | None) -> DurationNs | None:
    """Return the duration `text`, the value of `option`; None if `text` is None.

    Raises InputError, which names the option, for a duration that `Conditions` would refuse.
    """
    duration = field_duration(option, "", text)
    if duration and duration < DURATION_MIN:
        raise InputError(option, f"{text} is less than 1 ms")
    return duration


def check_seeds(seeds: int) -> None:
    """Raise InputError if `seeds` is not an allowed value of --seeds."""
    if not 1 <= seeds <= SEEDS_MAX:
        raise InputError("--seeds", f"{seeds} is not from 1 to {SEEDS_MAX}")
