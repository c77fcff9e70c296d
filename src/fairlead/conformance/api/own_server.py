"""Our own API server in this process, with the users and the world of the recordings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fairlead import __version__
from fairlead.apiserver.admission.chain import served_admission
from fairlead.apiserver.auth.token import Tokens, authenticated
from fairlead.apiserver.discovery.documents import Documents
from fairlead.apiserver.http.app import ApiApp
from fairlead.apiserver.registry import Registry
from fairlead.apiserver.request import SYSTEM_MASTERS, User
from fairlead.apiserver.serving.server import ApiServer
from fairlead.apiserver.store import Store
from fairlead.apiserver.table.table import table
from fairlead.worlds.simulation.identity import SeededIds

Json = dict[str, Any]

START: Final = 1_800_000_000_000_000_000
_SEED: Final = 1
_ADDRESS: Final = "10.0.0.1:26443"
# The distribution that was recorded mounts this beside the cluster's own authority.
_AUTHORITIES: Final = (("openshift-service-ca.crt", "service-ca.crt"),)
_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")

USERS: Final[Mapping[str, User]] = {
    "admin": authenticated("admin", (SYSTEM_MASTERS,)),
    "alice": authenticated("alice", ("dev",)),
    "bob": authenticated("bob", ("viewers",)),
    "carol": authenticated("carol"),
    "sched": authenticated("system:kube-scheduler"),
    "kcm": authenticated("system:kube-controller-manager"),
    "node1": authenticated("system:node:node-1", ("system:nodes",)),
}


class OwnServer:
    """A fresh server; `now` is when it is, in ns since 1970, and is moved by whoever has it."""

    def __init__(self) -> None:
        """Begin with what every cluster has."""
        self.now = START
        ids = SeededIds(_SEED)
        admission = served_admission(ids.new_suffix, authorities=_AUTHORITIES)
        self.store = Store(ids, admission=admission)
        registry = Registry()
        self.server = ApiServer(
            self.store,
            clock=self._clock,
            registry=registry,
            documents=(Documents(registry, _ADDRESS, __version__),),
            table_of=table,
        )
        self.tokens = Tokens({token_of(name): user for name, user in USERS.items()})
        self.app = ApiApp(self.server, self.tokens, self._clock)
        for name in _NAMESPACES:
            manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            self.store.create(manifest, self.now)
        self.store.load((), self.now)

    def _clock(self) -> int:
        return self.now


def token_of(user: str) -> str:
    """The token of a recorded user."""
    return f"{user}-token"
