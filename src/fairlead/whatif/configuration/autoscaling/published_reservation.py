"""The memory that kubelets of EKS, GKE and AKS reserve, by the formulas that the services publish.

A formula applies only if its result for an existing node is within 5 % of the node's reservation.
This test excludes kubelets with other settings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

_MIB: Final = 1 << 20
_EVICTION: Final = 100 * _MIB  # memory.available, below which the kubelet evicts pods
_TOLERANCE_PERCENT: Final = 5
# GKE, "Plan GKE Standard node sizes": (end of the range in MiB, reserved percent of the range).
_GKE_RANGES: Final = ((4096, 25), (8192, 20), (16384, 10), (131072, 6), (1 << 40, 2))


class PublishedReservation(Struct, frozen=True):
    """The formula of a `service` for the memory that the kubelet reserves.

    `of(bytes of memory, largest number of pods)` returns the reserved bytes of a node.
    """

    service: str
    of: Callable[[int, int], int]


def published_reservation(memory: int, pods: int, reserved: int) -> PublishedReservation | None:
    """Return the formula of EKS, GKE or AKS whose result fits the reserved memory of a node.

    The node has `memory` bytes, allows `pods` pods, and reserves `reserved` bytes. Returns None if
    no formula fits.
    """
    for one in _FORMULAS:
        expected = one.of(memory, pods)
        if abs(reserved - expected) * 100 <= expected * _TOLERANCE_PERCENT:
            return one
    return None


def _eks(_: int, pods: int) -> int:
    # source: amazon-eks-ami nodeadm/internal/kubelet/config.go: getMemoryMebibytesToReserve
    return (255 + 11 * pods) * _MIB + _EVICTION


def _gke(memory: int, _: int) -> int:
    found = begin = 0
    for end, percent in _GKE_RANGES:
        part = min(memory, end * _MIB) - begin
        if part <= 0:
            break
        found, begin = found + part * percent // 100, end * _MIB
    return found + _EVICTION


def _aks(memory: int, pods: int) -> int:
    # "Node resource reservations in AKS", for AKS 1.29 and later.
    return min((20 * pods + 50) * _MIB, memory // 4) + _EVICTION


_FORMULAS: Final = (
    PublishedReservation("EKS", _eks),
    PublishedReservation("GKE", _gke),
    PublishedReservation("AKS", _aks),
)
