"""Amounts: quantities by resource name, and the total requests and limits of a pod.

upstream: component-helpers/resource/helpers.go:PodRequests, PodLimits;
apiserver/pkg/quota/v1/resources.go for the arithmetic
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from fairlead.api.json import Json
from fairlead.api.quantity import Quantity, canonical, parse_quantity

Amounts = dict[str, Quantity]
Of = Literal["requests", "limits"]

_ZERO: Final = Quantity(nano=0)


def amounts(texts: Mapping[str, Any] | None) -> Amounts:
    """Return the parsed quantities of a resource list, by resource name."""
    return {name: parse_quantity(text) for name, text in (texts or {}).items()}


def add(left: Amounts, right: Amounts) -> Amounts:
    """Return the sum of `left` and `right` for each resource.

    The sum has the format of the amount in `left`, or of the amount in `right` if the amount in
    `left` is zero.
    """
    names = (*left, *(name for name in right if name not in left))
    return {name: _sum(left.get(name, _ZERO), right.get(name, _ZERO)) for name in names}


def subtract(left: Amounts, right: Amounts) -> Amounts:
    """Return `left` minus `right` for each resource; a difference may be negative."""
    negative = {name: Quantity(nano=-a.nano, format=a.format) for name, a in right.items()}
    return add(left, negative)


def maximum(left: Amounts, right: Amounts) -> Amounts:
    """Return the larger amount for each resource."""
    names = (*left, *(name for name in right if name not in left))
    return {name: max(left.get(name, _ZERO), right.get(name, _ZERO)) for name in names}


def amounts_text(amounts_: Amounts, names: Iterable[str]) -> str:
    """Return the amounts of `names` as text, such as `cpu=1,memory=2Gi`, sorted by name."""
    return ",".join(f"{name}={canonical(amounts_[name])}" for name in sorted(names))


def pod_amounts(spec: Json, of: Of) -> Amounts:
    """Return the sum of a pod's requests or limits (`of` says which), including overhead.

    Overhead is added to a limit only if the pod has a limit for that resource.
    """
    total = amounts_without_overhead(spec, of)
    overhead = amounts(spec.get("overhead"))
    if of == "limits":
        overhead = {name: amount for name, amount in overhead.items() if name in total}
    return add(total, overhead)


def amounts_without_overhead(spec: Json, of: Of) -> Amounts:
    """Return the sum of a pod's requests or limits (`of` says which), without overhead.

    An amount in the pod's spec.resources replaces the total of its containers for that resource.
    """
    containers = _containers_total(spec.get("containers") or (), of)
    sidecars: Amounts = {}
    peak: Amounts = {}
    for init in spec.get("initContainers") or ():
        amounts_of_init = _container_amounts(init, of)
        if init.get("restartPolicy") == "Always":
            sidecars = add(sidecars, amounts_of_init)
            peak = maximum(peak, sidecars)
        else:
            peak = maximum(peak, add(amounts_of_init, sidecars))
    total = maximum(add(containers, sidecars), peak)
    return total | amounts((spec.get("resources") or {}).get(of))


def _containers_total(containers: Iterable[Json], of: Of) -> Amounts:
    total: Amounts = {}
    for container in containers:
        total = add(total, _container_amounts(container, of))
    return total


def _container_amounts(container: Json, of: Of) -> Amounts:
    return amounts((container.get("resources") or {}).get(of))


def _sum(one: Quantity, other: Quantity) -> Quantity:
    written = one.format if one.nano else other.format
    return Quantity(nano=one.nano + other.nano, format=written)
