"""Queues and PodGroups: amounts of resources that are amounts.

Upstream these are custom resources, whose schemas refuse what is no quantity.
upstream: volcano: config/crd/volcano/bases/scheduling.volcano.sh_queues.yaml, _podgroups.yaml
"""

from __future__ import annotations

from fairlead.api.objects import PodGroup, Queue, ResourceList
from fairlead.apiserver.validation.field import Causes, invalid
from fairlead.apiserver.validation.resource import NOT_A_QUANTITY, quantity_or_none


def check_queue(queue: Queue) -> Causes:
    """What a Queue may have, should have and always has."""
    spec = queue.spec
    yield from _check_amounts("spec.capability", spec.capability)
    yield from _check_amounts("spec.deserved", spec.deserved)
    yield from _check_amounts("spec.guarantee.resource", spec.guarantee.resource)


def check_pod_group(group: PodGroup) -> Causes:
    """What a PodGroup needs at least."""
    yield from _check_amounts("spec.minResources", group.spec.min_resources or {})


def _check_amounts(field: str, resources: ResourceList) -> Causes:
    for name, text in resources.items():
        if quantity_or_none(text) is None:
            yield invalid(f"{field}[{name}]", str(text), NOT_A_QUANTITY)
