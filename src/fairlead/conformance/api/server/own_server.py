"""OwnServer: Fairlead's API server, run in this process; authenticates the recorded users."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import ClassVar, Final

from fairlead import __version__
from fairlead.api.json import Json
from fairlead.api.timestamp import NANOSECONDS_PER_MILLISECOND
from fairlead.apiserver.admission.chain import served_admission
from fairlead.apiserver.admission.quota.resource_quota import ResourceQuota
from fairlead.apiserver.auth.authentication.service_account_token import ServiceAccountTokens
from fairlead.apiserver.auth.authentication.token import TokenAuthenticator, authenticated
from fairlead.apiserver.auth.authorization.node_authorizer import NodeAuthorizer
from fairlead.apiserver.auth.authorization.rbac import Rbac
from fairlead.apiserver.auth.authorizer import Identity
from fairlead.apiserver.auth.bootstrap_policy.objects import RBAC_GROUP, bootstrap_objects
from fairlead.apiserver.auth.certificate_authority import new_authority
from fairlead.apiserver.endpoints.bootstrap import control_plane_objects, create_as_apiserver
from fairlead.apiserver.endpoints.component_status import component
from fairlead.apiserver.endpoints.compose import complete_server
from fairlead.apiserver.endpoints.post_start_hook.reconcile_delay import ReconcileDelay
from fairlead.apiserver.http.app import ApiApp
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.registry.store import PodCopying, Store
from fairlead.apiserver.request import AUTHENTICATED, SYSTEM_MASTERS, User
from fairlead.apiserver.validation.scheduling import SYSTEM_CLASSES
from fairlead.conformance.api.server.delayed_quotas import DelayedQuotas
from fairlead.worlds.seeded_ids import SeededIds


def _refused(port: int) -> str:
    """Return the health message of an unreachable component with the port `port`."""
    place = f"127.0.0.1:{port}"
    return f'Get "https://{place}/healthz": dial tcp {place}: connect: connection refused'


# The default start time, in ns since 1970.
START: Final = 1_800_000_000_000_000_000
_KEY: Final = new_authority(datetime(2026, 1, 1, tzinfo=UTC)).key
ADDRESS: Final = "10.0.0.1:26443"
# (ConfigMap, key): the recorded cluster's distribution mounts this CA certificate into pods, in
# addition to the cluster's own CA certificate.
_AUTHORITIES: Final = (("openshift-service-ca.crt", "service-ca.crt"),)

# The recorded component statuses.
_COMPONENTS: Final = (
    component("controller-manager", _refused(10257), is_healthy=False),
    component("scheduler", _refused(10259), is_healthy=False),
    component("etcd-0"),
)

# The recorded delays of the post-start hooks.
_RECORDED_DELAYS: Final = ReconcileDelay(
    accepted=3 * NANOSECONDS_PER_MILLISECOND,
    established=3 * NANOSECONDS_PER_MILLISECOND,
    ending=6 * NANOSECONDS_PER_MILLISECOND,
    ended=6 * NANOSECONDS_PER_MILLISECOND,
    flow_status=3 * NANOSECONDS_PER_MILLISECOND,
    service_status=2 * NANOSECONDS_PER_MILLISECOND,
)

# The recorded delay until the admission plugin ResourceQuota sees the modification of a quota.
_QUOTA_DELAY: Final = 3 * NANOSECONDS_PER_MILLISECOND

USERS: Final[Mapping[str, User]] = {
    "admin": authenticated("admin", (SYSTEM_MASTERS,), "admin"),
    "alice": authenticated("alice", ("dev",), "alice"),
    "bob": authenticated("bob", ("viewers",), "bob"),
    "carol": authenticated("carol", uid="carol"),
    "sched": authenticated("system:kube-scheduler"),
    "kcm": authenticated("system:kube-controller-manager"),
    "node1": authenticated("system:node:node-1", ("system:nodes",)),
}


class OwnServer:
    """An API server of Fairlead; the caller advances its time `now`, in ns since 1970."""

    has_controllers = False
    delays: ClassVar = _RECORDED_DELAYS
    # The resource versions that were used before the recording started.
    versions_before: ClassVar = 0

    def __init__(self, start: int = START, *, slowness: int = 1) -> None:
        """Start at the time `start`, in ns since 1970.

        The server has the objects that every recorded cluster had at the start. `slowness`
        multiplies the recorded delays, and is the seed of generated names.
        """
        self.now = start
        ids = SeededIds(slowness)
        quotas = DelayedQuotas(self._clock, slowness * _QUOTA_DELAY)
        plugins = served_admission(ids.new_suffix, authorities=_AUTHORITIES)
        admission = [quotas if isinstance(one, ResourceQuota) else one for one in plugins]
        self.store = Store(ids, admission=admission, registry=API_SERVER, copying=PodCopying())
        self.store.subscribe(quotas.note)
        self.store.storage.restore((), self.versions_before)
        rights = Rbac(self.store.storage, (NodeAuthorizer(self.store.storage),))
        accounts = ServiceAccountTokens(_KEY, self.store.storage, self._clock)
        users = {token_of(name): user for name, user in USERS.items()}
        self.tokens = TokenAuthenticator(users, accounts.recognize)
        self.server = complete_server(
            self.store,
            clock=self._clock,
            address=ADDRESS,
            version=__version__,
            authorize=rights,
            identity=Identity(
                rights=rights,
                recognize=self.tokens.user_of,
                issue=accounts.issue,
                keys=accounts.keys,
            ),
            components=_COMPONENTS,
            delays=self.delays.slowed(slowness),
        )
        self.app = ApiApp(self.server, self.tokens, self._clock)
        for manifest in SYSTEM_CLASSES.values():
            self.store.put_as_is(manifest, self.now)
        create_as_apiserver(
            self.store,
            (*bootstrap_objects(), *control_plane_objects(), *_distribution_objects()),
            self.now,
        )
        for instant in (self.now, self.now + 1_000 * NANOSECONDS_PER_MILLISECOND):
            self.server.run_post_start_hooks(instant)

    def settle(self) -> None:
        """Do nothing, because without controllers no work becomes due."""

    def _clock(self) -> int:
        return self.now


def _distribution_objects() -> tuple[Json, ...]:
    """Return two RBAC objects that the recorded cluster has and stock Kubernetes does not have.

    The recorded cluster ran a Kubernetes distribution that creates these objects. The names of the
    objects are chosen so that lists contain the objects at the recorded positions.
    """
    meta, group = {"name": "system:d-well-known"}, RBAC_GROUP
    kind = {"apiVersion": f"{group}/v1", "metadata": meta}
    rule = {"verbs": ["get"], "nonResourceURLs": ["/.well-known", "/.well-known/*"]}
    everybody = {"kind": "Group", "apiGroup": group, "name": AUTHENTICATED}
    reference = {"apiGroup": group, "kind": "ClusterRole", **meta}
    return (
        {**kind, "kind": "ClusterRole", "rules": [rule]},
        {**kind, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [everybody]},
    )


def token_of(user: str) -> str:
    """Return the token of the recorded user `user`."""
    return f"{user}token"
