"""KubeletReservation: the resources that the kubelet of an EC2NodeClass reserves on its nodes.

    kubeReserved, systemReserved   amounts by resource. If kubeReserved lacks a resource, Karpenter
                                   assumes a part of the cores, 255Mi of memory plus 11Mi per pod,
                                   or 1Gi of ephemeral storage
    evictionHard, evictionSoft     the signals memory.available and nodefs.available: an amount, or
                                   a percentage of the capacity. If both settings have a signal, the
                                   larger one counts. If neither has it, Karpenter assumes 100Mi of
                                   memory, or 10 % of ephemeral storage

source: karpenter-provider-aws pkg/providers/instancetype/types.go: kubeReservedResources,
systemReservedResources, evictionThreshold
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Final

from msgspec import Struct

from fairlead.api.objects import QuantityText, ResourceList
from fairlead.api.quantity import milli_value, whole_value

RESERVING: Final = ("kubeReserved", "systemReserved", "evictionHard", "evictionSoft")
"""The settings of a kubelet that reserve resources."""

_MEBI: Final = 1 << 20
_GIBI: Final = 1 << 30
_SIGNALS: Final = {"memory": "memory.available", "ephemeral-storage": "nodefs.available"}
# The share of the millicores of each range that is reserved, in units of 1/10,000.
_CORES: Final = ((0, 1_000, 600), (1_000, 2_000, 100), (2_000, 4_000, 50), (4_000, 1 << 31, 25))

Amounts = Mapping[str, int]
"""Millicores of cpu, and bytes of memory and ephemeral-storage."""


class KubeletReservation(Struct, frozen=True):
    """The settings that reserve resources; an absent setting is {}.

    `soft` is {} if the images of the class ignore evictionSoft.
    """

    kube: Mapping[str, QuantityText] = {}
    system: Mapping[str, QuantityText] = {}
    hard: Mapping[str, QuantityText] = {}
    soft: Mapping[str, QuantityText] = {}

    def allocatable(self, capacity: Amounts, pods: int) -> ResourceList:
        """Return what is left of each resource in `capacity`, which a kubelet reports.

        `pods` is the number of pods by which the kubelet computes the memory that it reserves.
        """
        kube = {
            "cpu": _of_cores(capacity["cpu"]),
            "memory": (11 * pods + 255) * _MEBI,
            "ephemeral-storage": _GIBI,
        } | _amounts(self.kube)
        system = _amounts(self.system)
        found: ResourceList = {}
        for name, whole in capacity.items():
            taken = kube.get(name, 0) + system.get(name, 0) + self._threshold(name, whole)
            left = max(0, whole - taken)
            found[name] = f"{left}m" if name == "cpu" else str(left)
        return found

    def _threshold(self, name: str, whole: int) -> int:
        """Return the eviction threshold: with less of the resource `name`, pods are evicted.

        `whole` is the capacity of the node. The amounts are in millicores for cpu, otherwise in
        whole units.
        """
        signal = _SIGNALS.get(name)
        if signal is None:
            return 0
        stated = [one[signal] for one in (self.hard, self.soft) if signal in one]
        if stated:
            return max(_signal(one, whole) for one in stated)
        return 100 * _MEBI if name == "memory" else ceil(whole / 10)


def check_reservation(reservation: KubeletReservation) -> None:
    """Raise ValueError if an amount of `reservation` is not valid."""
    for amounts in (reservation.kube, reservation.system):
        _amounts(amounts)
    for signals in (reservation.hard, reservation.soft):
        for name in _SIGNALS.values():
            if name in signals:
                _signal(signals[name], 0)


def _of_cores(milli: int) -> int:
    """Return how many millicores Karpenter assumes to be reserved on a node with `milli`."""
    return sum((min(milli, end) - start) * share // 10_000 for start, end, share in _CORES
               if milli >= start)  # fmt: skip


def _amounts(stated: Mapping[str, QuantityText]) -> dict[str, int]:
    return {
        name: milli_value(amount) if name == "cpu" else whole_value(amount)
        for name, amount in stated.items()
    }


def _signal(text: QuantityText, whole: int) -> int:
    """Return the threshold `text` of an eviction signal as an amount.

    A percentage is a part of `whole`, the capacity; but 100% means that the signal is off.
    """
    written = str(text)
    if not written.endswith("%"):
        return whole_value(text)
    percent = float(written.strip("%"))
    return 0 if percent == 100 else ceil(whole / 100 * percent)
