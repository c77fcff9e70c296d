"""The user name and groups of a service account."""

from __future__ import annotations

from typing import Final

from fairlead.apiserver.request import AUTHENTICATED

SERVICE_ACCOUNT_PREFIX: Final = "system:serviceaccount:"
SERVICE_ACCOUNTS: Final = "system:serviceaccounts"


def service_account_groups(namespace: str) -> tuple[str, ...]:
    """Return the groups to which every service account in `namespace` belongs."""
    return (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}", AUTHENTICATED)
