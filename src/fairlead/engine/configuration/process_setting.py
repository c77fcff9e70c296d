"""Checks the settings of the kube-scheduler process, which have no effect on its decisions.

kube-scheduler does not start with a file whose process settings are invalid.

upstream: component-base/config/validation/validation.go: ValidateLeaderElectionConfiguration,
ValidateClientConnectionConfiguration
"""

from __future__ import annotations

from typing import Final

from fairlead.api.text.field_problem import invalid
from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, parse_duration
from fairlead.engine.configuration.error import ConfigurationError
from fairlead.engine.configuration.v1 import ClientConnectionForm, LeaderElectionForm

# upstream: config/v1alpha1/defaults.go: RecommendedDefaultLeaderElectionConfiguration
_LEASE_DURATION: Final = 15 * NANOSECONDS_PER_SECOND
_RENEW_DEADLINE: Final = 10 * NANOSECONDS_PER_SECOND
_RETRY_PERIOD: Final = 2 * NANOSECONDS_PER_SECOND


def check_leader_election(form: LeaderElectionForm | None) -> None:
    """Raise ConfigurationError if a duration in `form` is invalid and leader election is on."""
    if form is None or form.leader_elect is False:
        return
    lease = _duration("leaseDuration", form.lease_duration, _LEASE_DURATION)
    renewal = _duration("renewDeadline", form.renew_deadline, _RENEW_DEADLINE)
    _duration("retryPeriod", form.retry_period, _RETRY_PERIOD)
    if lease <= renewal:
        problem = invalid(form.lease_duration or "15s", "must be greater than renewDeadline")
        raise ConfigurationError("leaderElection.leaseDuration", problem)


def check_client_connection(form: ClientConnectionForm | None) -> None:
    """Raise ConfigurationError if `form` has a negative burst."""
    if form is not None and (form.burst or 0) < 0:
        problem = invalid(form.burst, "must be non-negative")
        raise ConfigurationError("clientConnection.burst", problem)


def _duration(name: str, text: str | None, default: int) -> int:
    """Return the duration `text` in ns; `default` if it is unset or 0."""
    try:
        found = parse_duration(text) if text is not None else 0
    except ValueError as cause:
        raise ConfigurationError(f"leaderElection.{name}", str(cause)) from None
    if found < 0:
        problem = invalid(text, "must be greater than zero")
        raise ConfigurationError(f"leaderElection.{name}", problem)
    return found or default
