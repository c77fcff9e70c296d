"""SIMULATION: the registry of a store that only the engine's controllers write to.

Its strategies have only the steps that controllers and scheduling depend on. Objects are stored as
controllers make them. No addresses are allocated, and there are no warnings. Containers need
neither names nor images. Only the defaults that scheduling reads are set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.definition.status import mark_definition
from fairlead.apiserver.kind import (
    CUSTOM_RESOURCE_DEFINITION,
    DEPLOYMENT,
    ENDPOINT_SLICE,
    JOB,
    NAMESPACE,
    NODE,
    POD,
    PRIORITY_CLASS,
    REPLICATION_CONTROLLER,
    Kind,
)
from fairlead.apiserver.registry.registry import Registry
from fairlead.apiserver.registry.strategies import apps, discovery, scheduling
from fairlead.apiserver.registry.strategies.core import namespace, pod
from fairlead.apiserver.registry.strategies.table import StrategyTable
from fairlead.apiserver.registry.strategy import DEFAULT, GarbageCollection, ResourceStrategy
from fairlead.apiserver.validation.meta.field import Causes
from fairlead.apiserver.validation.validator import (
    SimulationValidator,
    defaulted,
    defaulted_update,
)

_ORPHANING: Final = ResourceStrategy(garbage_collection=GarbageCollection.ORPHAN_DEPENDENTS)
_BEHAVIOR: Final[Mapping[str, ResourceStrategy]] = {
    CUSTOM_RESOURCE_DEFINITION.resource: ResourceStrategy(
        begin_deletion=mark_definition, repeat_deletion=mark_definition
    ),
    DEPLOYMENT.resource: ResourceStrategy(increments_generation=apps.is_deployment_respecified),
    ENDPOINT_SLICE.resource: ResourceStrategy(increments_generation=discovery.is_slice_respecified),
    "events": ResourceStrategy(garbage_collection=GarbageCollection.UNSUPPORTED),
    JOB.resource: _ORPHANING,
    NAMESPACE.resource: ResourceStrategy(
        begin_deletion=namespace.begin_deletion, holds_deleted=namespace.has_content_finalizers
    ),
    NODE.resource: ResourceStrategy(accepts_status_on_create=True),
    POD.resource: ResourceStrategy(
        initial_status=pod.initial_status,
        prepare_for_create=pod.merge_label_keys,
        begin_deletion=pod.begin_deletion,
        holds_deleted=pod.holds_deleted,
    ),
    PRIORITY_CLASS.resource: scheduling.STRATEGIES[PRIORITY_CLASS.resource],
    REPLICATION_CONTROLLER.resource: _ORPHANING,
}
# Resources to which a simulation applies the API server's rules for updates.
_COMPARED: Final = (POD.resource, PRIORITY_CLASS.resource)


def _check_job(old: Json, new: Json) -> Causes:
    """Yield an error for each change of an immutable field of a Job.

    A missing selector is not an error, because a Job in a simulation may have no selector.
    """
    # Imported on first use: most simulations update only the status of Jobs.
    from fairlead.apiserver.validation.batch.job import check_job_changes  # noqa: PLC0415

    yield from check_job_changes(old, new)


_UPDATE_CHECKS: Final[Mapping[str, Callable[[Json, Json], Causes]]] = {JOB.resource: _check_job}


def _strategy(resource: str, served: ResourceStrategy) -> ResourceStrategy | None:
    """Return the strategy of `resource` in a simulation, derived from `served`.

    `served` is the strategy of an API server. Return None for the custom resources of batch
    schedulers; a Registry then uses the strategy `CUSTOM`.
    """
    if resource in scheduling.BATCH_STRATEGIES:  # validated only on an API server
        return None
    compared = served.rules.update if resource in _COMPARED else None
    update = _UPDATE_CHECKS.get(resource, compared)
    behavior = _BEHAVIOR.get(resource, DEFAULT)
    return replace(behavior, rules=replace(served.rules, update=update))


def _as_it_is(_: Kind, obj: Json) -> Json:
    return obj


def _new_as_it_is(_: Kind, __: Json | None, new: Json) -> Json:
    return new


def _no_status(_: Kind) -> Json | None:
    return None


SIMULATION: Final = Registry(
    strategies=StrategyTable(_strategy),
    decode=_as_it_is,
    default=defaulted,
    default_update=defaulted_update,
    read=_as_it_is,
    normalize=_new_as_it_is,
    zero_status=_no_status,
    validator=SimulationValidator(),
)
