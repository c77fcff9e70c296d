"""Amounts: exact quantities by resource, and what a pod asks for or is limited to as a whole.

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
    """Quantities as they are written in an object."""
    return {name: parse_quantity(text) for name, text in (texts or {}).items()}


def plus(one: Amounts, other: Amounts) -> Amounts:
    """Both together; a sum is written as its first part is."""
    names = (*one, *(name for name in other if name not in one))
    return {name: _sum(one.get(name, _ZERO), other.get(name, _ZERO)) for name in names}


def minus(one: Amounts, other: Amounts) -> Amounts:
    """What of `one` is left without `other`, which may be less than nothing."""
    negative = {name: Quantity(nano=-a.nano, format=a.format) for name, a in other.items()}
    return plus(one, negative)


def larger(one: Amounts, other: Amounts) -> Amounts:
    """By resource, the larger of both."""
    names = (*one, *(name for name in other if name not in one))
    return {name: max(one.get(name, _ZERO), other.get(name, _ZERO)) for name in names}


def listed(some: Amounts, names: Iterable[str]) -> str:
    """`cpu=1,memory=2Gi`, in order of names."""
    return ",".join(f"{name}={canonical(some[name])}" for name in sorted(names))


def pod_amounts(spec: Json, of: Of) -> Amounts:
    """What the containers come to, or the pod itself says; overhead comes on top."""
    containers = _total(spec.get("containers") or (), of)
    sidecars: Amounts = {}
    peak: Amounts = {}
    for init in spec.get("initContainers") or ():
        own = _own(init, of)
        if init.get("restartPolicy") == "Always":
            sidecars = plus(sidecars, own)
            peak = larger(peak, sidecars)
        else:
            peak = larger(peak, plus(own, sidecars))
    total = larger(plus(containers, sidecars), peak)
    total |= amounts((spec.get("resources") or {}).get(of))
    overhead = amounts(spec.get("overhead"))
    if of == "limits":
        overhead = {name: amount for name, amount in overhead.items() if name in total}
    return plus(total, overhead)


def _total(containers: Iterable[Json], of: Of) -> Amounts:
    total: Amounts = {}
    for container in containers:
        total = plus(total, _own(container, of))
    return total


def _own(container: Json, of: Of) -> Amounts:
    return amounts((container.get("resources") or {}).get(of))


def _sum(one: Quantity, other: Quantity) -> Quantity:
    written = one.format if one.nano else other.format
    return Quantity(nano=one.nano + other.nano, format=written)
