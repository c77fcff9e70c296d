"""Requests of pods in upstream's format: quantities as JSON, in the notation that users wrote.

upstream: pkg/utils/resources/resources.go:RequestsForPods, String
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from fairlead.api.objects import Container, Pod, ResourceList
from fairlead.api.pods.facts import is_sidecar
from fairlead.api.quantity import Format, Quantity, canonical, parse_quantity

Quantities = dict[str, Quantity]


def resources_text(pods: Sequence[Pod]) -> str:
    """Return the total effective requests of `pods` as JSON, such as `{"cpu":"2","pods":"1"}`."""
    total: Quantities = {}
    for pod in pods:
        _add(total, _effective(pod))
    total["pods"] = Quantity(nano=len(pods) * 10**9, format=Format.DECIMAL_EXPONENT)
    shown = {name: canonical(total[name]) for name in sorted(total)}
    return json.dumps(shown, separators=(",", ":"))


def _effective(pod: Pod) -> Quantities:
    """Return the pod's effective requests; each quantity keeps the format that the user wrote.

    The amounts are the same as in `fairlead.api.pods.requests`.
    """
    running: Quantities = {}
    for container in pod.spec.containers:
        _add(running, _requests(container))
    sidecars: Quantities = {}
    starting: Quantities = {}
    for container in pod.spec.init_containers:
        needed = dict(sidecars)
        _add(needed, _requests(container))
        if is_sidecar(container):
            _add(running, _requests(container))
            sidecars = needed
        _raise(starting, needed)
    _raise(running, starting)
    if pod.spec.resources is not None:
        for name, quantity in _parsed(pod.spec.resources.requests).items():
            if name in ("cpu", "memory") or name.startswith("hugepages-"):
                running[name] = quantity
    _add(running, _parsed(pod.spec.overhead))
    return running


def _requests(container: Container) -> Quantities:
    return _parsed(container.resources.requests)


def _parsed(resources: ResourceList) -> Quantities:
    found = ((name, parse_quantity(text)) for name, text in resources.items())
    return {name: Quantity(nano=one.nano, format=one.format) for name, one in found}


def _add(total: Quantities, more: Mapping[str, Quantity]) -> None:
    """Add `more` to `total`. Each sum keeps the format of its first nonzero amount."""
    for name, one in more.items():
        before = total.get(name)
        if before is None or before.nano == 0:
            total[name] = one
        else:
            total[name] = Quantity(nano=before.nano + one.nano, format=before.format)


def _raise(total: Quantities, other: Mapping[str, Quantity]) -> None:
    for name, one in other.items():
        if name not in total or one.nano > total[name].nano:
            total[name] = one
