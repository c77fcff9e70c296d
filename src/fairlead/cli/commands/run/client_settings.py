"""The settings of a KubeSchedulerConfiguration for API access: leaderElection, clientConnection.

The content types of clientConnection have no effect, because all requests are JSON.

upstream: component-base/config/v1alpha1/{types,defaults}.go
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4  # noqa: TID251 - distinguishes replicas

from fairlead.api.timestamp import parse_duration
from fairlead.client.leader_election import ElectionConfig
from fairlead.client.request_queue import RequestLimits
from fairlead.engine.configuration.v1 import ClientConnectionForm, LeaderElectionForm
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.strict_form import decode_strictly

LEASES: Final = "leases"
HOST_ENVIRONMENT: Final = "POD_NAME"


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The settings for API access in a configuration file.

    `election` is None if leader election is off; `kubeconfig` is "" if the file does not set it.
    """

    election: ElectionConfig | None
    limits: RequestLimits
    kubeconfig: str


def read_client_settings(document: Document | None, lease: str = "") -> ClientSettings:
    """Return the settings in `document`, or the defaults if `document` is None. Raises InputError.

    `lease` is the default name of the Lease; "" means the Lease of kube-scheduler.
    """
    value: Any = document.value if document is not None else {}
    source = document.source if document is not None else ""
    part = _part(source, value, "leaderElection", LeaderElectionForm)
    connection = _part(source, value, "clientConnection", ClientConnectionForm)
    if (connection.burst or 0) < 0:
        # upstream: component-base/config/validation: ValidateClientConnectionConfiguration
        raise InputError(source, "must be non-negative", field="clientConnection.burst")
    usual = RequestLimits()
    limits = RequestLimits(qps=connection.qps or usual.qps, burst=connection.burst or usual.burst)
    return ClientSettings(_election(source, part, lease), limits, connection.kubeconfig)


def host_name() -> str:
    """Return the name of this pod or machine, for use in events and Leases."""
    return os.environ.get(HOST_ENVIRONMENT) or socket.gethostname()


def _part(source: str, value: Any, name: str, form: type[Any]) -> Any:
    found = value.get(name) if isinstance(value, dict) else None
    return decode_strictly(Document(source, found or {}), form, name)


def _election(source: str, form: LeaderElectionForm, lease: str) -> ElectionConfig | None:
    if form.leader_elect is False:
        return None
    if form.resource_lock not in ("", LEASES):
        problem = f"{form.resource_lock!r} is not supported; must be {LEASES}"
        raise InputError(source, problem, field="leaderElection.resourceLock")
    identity = f"{host_name()}_{uuid4()}"
    settings = {
        "namespace": form.resource_namespace,
        "name": form.resource_name or lease,
        "lease_duration": _duration(source, "leaseDuration", form.lease_duration),
        "renew_deadline": _duration(source, "renewDeadline", form.renew_deadline),
        "retry_period": _duration(source, "retryPeriod", form.retry_period),
    }
    given: dict[str, Any] = {name: value for name, value in settings.items() if value}
    config = ElectionConfig(identity=identity, **given)
    if config.problem():
        raise InputError(source, config.problem(), field="leaderElection")
    return config


def _duration(source: str, name: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError as cause:
        raise InputError(source, str(cause), field=f"leaderElection.{name}") from None
