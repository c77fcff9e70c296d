"""Issuer: the upstream component that would have sent a command.

Each component writes under its own field manager (metadata.managedFields) and as its own user.
Admission webhooks see this user.

upstream: cmd/kube-controller-manager/names/controller_names.go for the accounts
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct


class Component(StrEnum):
    """An upstream program; the value is the name of its field manager."""

    CONTROLLER_MANAGER = "kube-controller-manager"
    KUBELET = "kubelet"
    SCHEDULER = "kube-scheduler"
    API_SERVER = "kube-apiserver"
    KARPENTER = "karpenter"
    CLUSTER_AUTOSCALER = "cluster-autoscaler"


class Issuer(Struct, frozen=True, cache_hash=True):
    """A component and, for the controller manager, the service account of one controller.

    `account` is empty for other components. `account` is also empty if one controller of Fairlead
    replaces several upstream controllers. The kind and the owner of the command's target then
    determine the account.
    """

    component: Component
    account: str = ""


SCHEDULER: Final = Issuer(Component.SCHEDULER)
KUBELET: Final = Issuer(Component.KUBELET)
API_SERVER: Final = Issuer(Component.API_SERVER)
KARPENTER: Final = Issuer(Component.KARPENTER)
CLUSTER_AUTOSCALER: Final = Issuer(Component.CLUSTER_AUTOSCALER)


def controller_account(account: str) -> Issuer:
    """Return the issuer for the controller with the service account `account` in kube-system."""
    return Issuer(Component.CONTROLLER_MANAGER, account)
