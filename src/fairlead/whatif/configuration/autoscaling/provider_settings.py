"""Settings of the simulated provider: delivery times and shortages of machines.

    provision times   "3m", or "gpu=8m" for one node group or NodePool
    capacity outages  "zone=eu-1a,type=m5.large": no machine with both labels is delivered

Names of groups, zones and types are checked against the machines that the autoscaler can create.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.well_known_label import INSTANCE_TYPE, ZONE
from fairlead.engine.core.instant import DurationNs
from fairlead.whatif.configuration.autoscaling.autoscaler import Autoscaling
from fairlead.whatif.input.error import InputError, known_names
from fairlead.whatif.input.strict_form import field_duration

if TYPE_CHECKING:
    from fairlead.engine.autoscaling.capacity_outage import CapacityOutage
    from fairlead.engine.autoscaling.karpenter.config import KarpenterConfig

GROUP: Final = "group"
_LABELS: Final = {
    "zone": ZONE,
    "type": INSTANCE_TYPE,
    "capacity-type": "karpenter.sh/capacity-type",
}


class StatedOutage(Struct, frozen=True):
    """A capacity outage from the user's file `source`; `path` is the field in this file."""

    source: str
    path: str
    outage: CapacityOutage


class ProviderSettings(Struct, frozen=True, kw_only=True):
    """Provision times and capacity outages of the simulated provider.

    Error messages name the place of the provision times: `source` is the file or the option, and
    `path` is the field of the file ("" for an option).

    `provision_times` contains the times of single node groups or NodePools. `provision_time` is the
    time of all other groups and NodePools; None keeps the times in the autoscaler's configuration.
    """

    source: str = "--provision-time"
    path: str = ""
    provision_time: DurationNs | None = None
    provision_times: Mapping[str, DurationNs] = field(default_factory=dict)
    outages: tuple[StatedOutage, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether all settings have their default values."""
        has_times = self.provision_time is not None or self.provision_times
        return not has_times and not self.outages


DEFAULT_PROVIDER: Final = ProviderSettings()


def provision_times(
    texts: Iterable[str], source: str = "--provision-time", name: str = ""
) -> ProviderSettings:
    """Return the settings with the provision times `texts`, each `DURATION` or `GROUP=DURATION`.

    Raises InputError, also for two times of one group; the message names `source` (a file or an
    option) and the field `name`.
    """
    usual: DurationNs | None = None
    times: dict[str, DurationNs] = {}
    for text in texts:
        group, equals, duration = text.rpartition("=")
        found = field_duration(source, name, duration)
        if equals and not group:
            raise InputError(source, f"{text!r} names no group before '='", field=name)
        if group in times or (not group and usual is not None):
            what = f"the time of {group}" if group else "the time of all groups"
            raise InputError(source, f"{what} is given twice", field=name)
        if equals and found is not None:
            times[group] = found
        else:
            usual = found
    return ProviderSettings(source=source, path=name, provision_time=usual, provision_times=times)


def capacity_outage(
    source: str, name: str, text: str, begin: DurationNs, lasts: DurationNs | None
) -> StatedOutage:
    """Return the outage of the machines that `text` selects.

    `text` is a zone, or `key=value` pairs separated by commas. A key is `zone`, `type`,
    `capacity-type`, `group`, or a label of nodes. The outage starts at `begin`; if `lasts` is None,
    it never ends. Raises InputError; the message names the file `source` and the field `name`.
    """
    # Imported only if it is needed: most scenarios have no outage.
    from fairlead.engine.autoscaling.capacity_outage import CapacityOutage  # noqa: PLC0415

    labels: dict[str, str] = {}
    group = ""
    for part in text.split(",") if "=" in text else [f"zone={text}"]:
        key, equals, value = (word.strip() for word in part.partition("="))
        if not (key and equals and value):
            problem = f"{part.strip()!r} is not key=value, such as zone=eu-1a or type=m5.large"
            raise InputError(source, problem, field=name)
        if key == GROUP:
            group = value
        else:
            labels[_LABELS.get(key, key)] = value
    end = None if lasts is None else begin + lasts
    found = CapacityOutage(begin=begin, end=end, labels=labels, group=group)
    return StatedOutage(source, name, found)


def with_provider(autoscaling: Autoscaling, settings: ProviderSettings) -> Autoscaling:
    """Return `autoscaling` with a provider that has the given `settings`.

    Raises InputError if `autoscaling` has no autoscaler. Also raises InputError if `settings` name
    a node group, zone or instance type that the autoscaler does not have. But if clients can create
    NodePools during the run (`serves_resources`), a provision time may be for an unknown NodePool.
    """
    if settings.is_empty:
        return autoscaling
    if autoscaling.config is None and autoscaling.karpenter is None:
        source, name = settings.source, settings.path
        if settings.outages:
            source, name = settings.outages[0].source, settings.outages[0].path
        raise InputError(source, "needs an autoscaler", field=name)
    kinds = dict(_machine_kinds(autoscaling))
    groups = {group for group, _ in kinds.values()}
    # The NodePools of a served cluster can be created and deleted during the run.
    is_open = autoscaling.karpenter is not None and autoscaling.karpenter.serves_resources
    for group in () if is_open else settings.provision_times:
        _check_group(settings.source, settings.path, group, groups)
    for stated in settings.outages:
        if stated.outage.group:
            _check_group(stated.source, stated.path, stated.outage.group, groups)
        if not any(stated.outage.affects(*machine) for machine in kinds.values()):
            problem = f"no machine that {_name(autoscaling)} can create has these labels"
            raise InputError(stated.source, problem, field=stated.path)
    return _applied(autoscaling, settings)


def _name(found: Autoscaling) -> str:
    return "Cluster Autoscaler" if found.karpenter is None else "Karpenter"


def _check_group(source: str, name: str, group: str, groups: Iterable[str]) -> None:
    known = sorted(groups)
    if group not in known:
        hint = known_names(group, known)
        raise InputError(source, f"no node group {group!r}; {hint}", field=name)


def _machine_kinds(found: Autoscaling) -> Iterator[tuple[int, tuple[str, Mapping[str, str]]]]:
    """Yield (number, (group, labels)) for each kind of node that the autoscaler can create.

    Numbers begin at 0; `group` is a node group or NodePool.
    """
    if found.karpenter is not None:
        yield from enumerate(_offered(found.karpenter))
    elif found.config is not None:
        yield from enumerate(
            (spec.id, spec.labels_of(template))
            for spec in found.config.groups
            for template in spec.templates or ({},)
        )


def _offered(config: KarpenterConfig) -> Iterator[tuple[str, Mapping[str, str]]]:
    for pool in config.pools:
        template = pool.spec.template.metadata.labels
        for instance_type in config.types:
            for offering in instance_type.offerings:
                stated = (*instance_type.requirements, *offering.requirements)
                labels = {one.key: one.single for one in stated if one.single is not None}
                yield pool.name, {**template, **labels}


def _applied(found: Autoscaling, settings: ProviderSettings) -> Autoscaling:
    outages = tuple(one.outage for one in settings.outages)
    usual, times = settings.provision_time, settings.provision_times
    karpenter, config = found.karpenter, found.config
    if karpenter is not None:
        karpenter = replace(
            karpenter,
            provision_time=karpenter.provision_time if usual is None else usual,
            provision_times=times,
            outages=outages,
        )
    if config is not None:
        groups = (
            replace(
                one,
                provision_time=times.get(one.id, one.provision_time if usual is None else usual),
            )
            for one in config.groups
        )
        config = replace(config, groups=tuple(groups), outages=outages)
    return replace(found, config=config, karpenter=karpenter)
