"""LeaderElection: elects one of several replicas as leader, by means of a Lease.

A replica that does not lead reads the Lease every `retry_period`, plus a random time. The replica
takes the Lease if the Lease has no holder. The replica also takes a Lease that has not changed for
the `leaseDurationSeconds` in the Lease. A replica measures this time with its own clock; the clocks
of different replicas are never compared. A leader that has not renewed the Lease for
`renew_deadline` loses leadership. `renew_deadline` is shorter than `lease_duration`, so the leader
stops before another replica can take the Lease.

This state machine does no I/O. `begin` starts an attempt to take or renew the Lease, and returns
the first request. The caller passes the response to `read` or `written`, or calls `failed`. Times
are in ns.

upstream: client-go/tools/leaderelection/leaderelection.go: tryAcquireOrRenew, isLeaseValid
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct, field

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, format_micro_time
from fairlead.client.error import UNDECODABLE
from fairlead.client.retry_backoff import Jitter

JITTER_FACTOR: Final = 1.2  # upstream: leaderelection.go:JitterFactor


class ElectionConfig(Struct, frozen=True, kw_only=True):
    """The settings of a leader election; `identity` is this replica's name.

    Defaults are upstream's; durations are in ns.
    """

    identity: str
    namespace: str = "kube-system"
    name: str = "kube-scheduler"
    lease_duration: int = 15 * NANOSECONDS_PER_SECOND
    renew_deadline: int = 10 * NANOSECONDS_PER_SECOND
    retry_period: int = 2 * NANOSECONDS_PER_SECOND

    def problem(self) -> str:
        """Return what is wrong with the durations; "" if they are valid."""
        # upstream: leaderelection.go:NewLeaderElector
        if self.lease_duration <= self.renew_deadline:
            return "leaseDuration must be greater than renewDeadline"
        if self.renew_deadline <= JITTER_FACTOR * self.retry_period:
            return f"renewDeadline must be greater than retryPeriod*{JITTER_FACTOR}"
        if self.retry_period <= 0:
            return "retryPeriod must be greater than zero"
        return ""


class _Metadata(Struct):
    uid: str = ""
    resource_version: str = field(default="", name="resourceVersion")


class _Lease(Struct):
    spec: dict[str, Any] = {}
    metadata: _Metadata = field(default_factory=_Metadata)


class ReadLease(Struct, frozen=True):
    """A request that reads the Lease."""


class WriteLease(Struct, frozen=True):
    """A request that creates the Lease, or updates it with PUT; `body` is the whole object."""

    body: bytes
    creates: bool


class LeaderElection:
    """The state of one replica in a leader election."""

    def __init__(self, config: ElectionConfig, jitter: Jitter) -> None:
        """Start as a follower; `jitter` returns numbers in [0, 1)."""
        self.config = config
        self.holder = ""  # the holder of the Lease when it was last read or written; "" for none
        self.uid = ""  # the uid of the Lease that was written last
        self._jitter = jitter
        self._spec: dict[str, Any] = {}
        self._version = ""
        self._observed_at = 0
        self._attempt_at = 0
        self._written: dict[str, Any] = {}
        self._renewed_at: int | None = None  # when the last successful renewal began
        self._next = 0

    def is_leader(self, now: int) -> bool:
        """Return whether this replica leads at `now`."""
        return self._renewed_at is not None and now < self._renewed_at + self.config.renew_deadline

    def has_lost(self, now: int) -> bool:
        """Return whether this replica was the leader and has lost leadership.

        A replica that has lost leadership never becomes leader again.
        """
        return self._renewed_at is not None and not self.is_leader(now)

    def deadline(self) -> int | None:
        """Return the time (ns) at which this replica's leadership ends if the Lease is not renewed.

        Returns None if this replica has never been the leader.
        """
        return None if self._renewed_at is None else self._renewed_at + self.config.renew_deadline

    def next_attempt(self) -> int:
        """Return the time (ns) at which to call `begin` again."""
        return self._next

    def begin(self, now: int) -> ReadLease | WriteLease:
        """Begin an attempt to take or renew the Lease, and return its first request."""
        self._attempt_at = now
        period = self.config.retry_period
        if self.is_leader(now):
            self._next = now + period
            if self._version:
                return self._renewal(now)
            return ReadLease()
        self._next = now + period + int(period * JITTER_FACTOR * self._jitter())
        return ReadLease()

    def read(self, body: bytes | None, now: int) -> WriteLease | None:
        """Process the Lease in `body`; return the write that takes or renews the Lease.

        `body` is None if there is no Lease. Returns None if `body` is not a Lease. Also returns
        None if another replica holds a Lease that has not expired. This replica then stops leading
        if it was the leader.
        """
        if body is None:
            return WriteLease(self._object(self._record(now, now, 0), ""), creates=True)
        try:
            lease = msgspec.json.decode(body, type=_Lease)
        except UNDECODABLE:
            self.holder = ""
            return None
        if lease.spec != self._spec:
            self._spec, self._observed_at = lease.spec, now
        self._version = lease.metadata.resource_version
        self.holder = str(lease.spec.get("holderIdentity") or "")
        if self.holder == self.config.identity:
            return self._renewal(now)
        if self.holder and now < self._observed_at + self._holders_duration():
            if self._renewed_at is not None:
                # another replica leads: stop immediately
                self._renewed_at -= self.config.renew_deadline
            return None
        taken = self._record(now, now, self._transitions() + 1)
        return WriteLease(self._object(taken, self._version), creates=False)

    def written(self, body: bytes, now: int) -> bool:
        """Process `body`, the response to a successful write; return whether `body` is a Lease.

        If the result is True, this replica leads. Exception: the replica does not lead if the write
        was a renewal and the replica's leadership has expired in the meantime. If the result is
        False, the caller must call `failed`.
        """
        try:
            lease = msgspec.json.decode(body, type=_Lease)
        except UNDECODABLE:
            return False
        self._spec, self._version = lease.spec, lease.metadata.resource_version
        self.uid, self._observed_at = lease.metadata.uid, now
        self.holder = self.config.identity
        if not self.has_lost(now):
            self._renewed_at = self._attempt_at
        self._next = self._attempt_at + self.config.retry_period
        return True

    def failed(self) -> None:
        """Record that an attempt to take or renew the Lease failed.

        The version of the Lease then counts as unknown, so the next attempt begins with a read of
        the Lease.
        """
        self._version = ""

    def release(self, body: bytes | None, now: int) -> WriteLease | None:
        """End leadership; return the write that frees the Lease in `body`.

        Read `body` immediately before this call. A renewal that was cancelled may still have
        changed the Lease. Returns None if `body` is None (there is no Lease, or it cannot be read),
        if `body` is not a Lease, or if this replica does not hold the Lease.
        """
        # upstream: leaderelection.go:release
        self._renewed_at = now - self.config.renew_deadline
        try:
            lease = msgspec.json.decode(body or b"", type=_Lease)
        except UNDECODABLE:
            return None
        if lease.spec.get("holderIdentity") != self.config.identity:
            return None
        self._spec = lease.spec
        spec = self._record(now, now, self._transitions())
        spec |= {"holderIdentity": "", "leaseDurationSeconds": 1}
        return WriteLease(self._object(spec, lease.metadata.resource_version), creates=False)

    def _renewal(self, now: int) -> WriteLease:
        """Return the write that renews a Lease that this replica holds."""
        spec = self._record(now, now, self._transitions())
        spec["acquireTime"] = self._spec.get("acquireTime") or spec["acquireTime"]
        return WriteLease(self._object({**self._spec, **spec}, self._version), creates=False)

    def _holders_duration(self) -> int:
        """Return how long (ns) the Lease is valid after its holder renews it.

        Usually this is the Lease's `leaseDurationSeconds`. The API permits a Lease without this
        field; then the duration in this replica's configuration is used.
        """
        known = self._spec.get("leaseDurationSeconds")
        if isinstance(known, int) and known > 0:
            return known * NANOSECONDS_PER_SECOND
        return self.config.lease_duration

    def _transitions(self) -> int:
        """Return the Lease's `leaseTransitions`; 0 if the Lease does not have this field."""
        known = self._spec.get("leaseTransitions")
        return known if isinstance(known, int) else 0

    def _record(self, acquired: int, renewed: int, transitions: int) -> dict[str, Any]:
        return {
            "holderIdentity": self.config.identity,
            "leaseDurationSeconds": max(1, self.config.lease_duration // NANOSECONDS_PER_SECOND),
            "acquireTime": format_micro_time(acquired),
            "renewTime": format_micro_time(renewed),
            "leaseTransitions": transitions,
        }

    def _object(self, spec: dict[str, Any], version: str) -> bytes:
        metadata = {"name": self.config.name, "namespace": self.config.namespace}
        if version:
            metadata["resourceVersion"] = version
        return msgspec.json.encode(
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": metadata,
                "spec": spec,
            }
        )
