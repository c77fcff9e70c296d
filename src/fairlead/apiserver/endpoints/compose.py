"""complete_server: an ApiServer with everything that Fairlead has, around a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fairlead.api.json import Json
from fairlead.apiserver.auth.authorizer import Identity
from fairlead.apiserver.discovery.documents import Documents
from fairlead.apiserver.discovery.issuer import IssuerDocuments
from fairlead.apiserver.endpoints.component_status import ONE_PROCESS, Components
from fairlead.apiserver.endpoints.field_order import arranged
from fairlead.apiserver.endpoints.handlers.computed import NOTHING_OBSERVED
from fairlead.apiserver.endpoints.request_scope import Authorize, Observed, allow_all
from fairlead.apiserver.endpoints.server import ApiServer, Document
from fairlead.apiserver.kind import COMPONENT_STATUS, Kind
from fairlead.apiserver.openapi.documents import OpenApi
from fairlead.apiserver.printers.table import table
from fairlead.apiserver.protobuf.decoder import decode
from fairlead.apiserver.registry.reconcile_delay import NO_DELAY, ReconcileDelay
from fairlead.apiserver.registry.served_kinds import BUILT_IN, ServedKinds
from fairlead.apiserver.registry.store import Store


def complete_server(  # noqa: PLR0913 - the parts it is made of
    store: Store,
    *,
    clock: Callable[[], int],
    address: str,
    version: str,
    authorize: Authorize = allow_all,
    identity: Identity | None = None,
    components: tuple[Json, ...] = ONE_PROCESS,
    observed: Mapping[Kind, Observed] = NOTHING_OBSERVED,
    late: ReconcileDelay = NO_DELAY,
) -> ApiServer:
    """The Kubernetes API over `store`.

    `clock` tells the time in ns since 1970, `address` is the host and port that clients are told,
    `version` is Fairlead's own, `identity` answers questions about users, `components` are the
    parts of the control plane, `observed` is what is served besides without being stored, `late` is
    how late the server acts by itself.
    """
    store.storage.arranged = arranged
    registry = ServedKinds((*BUILT_IN, *observed))
    documents: list[Document] = [Documents(registry, address, version), OpenApi(registry, version)]
    if identity is not None:
        documents.append(IssuerDocuments(identity, address))
    return ApiServer(
        store,
        clock=clock,
        registry=registry,
        authorize=authorize,
        documents=documents,
        table_of=table,
        protobuf=decode,
        found={COMPONENT_STATUS: Components(components), **observed},
        identity=identity,
        late=late,
    )
