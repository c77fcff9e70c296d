"""complete_server: composes a complete API server that serves the objects in a store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from fairlead.api.json import Json
from fairlead.apiserver.auth.authorizer import Authorize, Identity, allow_all
from fairlead.apiserver.discovery.documents import Documents
from fairlead.apiserver.discovery.issuer import IssuerDocuments
from fairlead.apiserver.endpoints.component_status import ONE_PROCESS, Components
from fairlead.apiserver.endpoints.handlers.computed import NOTHING_COMPUTED
from fairlead.apiserver.endpoints.post_start_hook.reconcile_delay import NO_DELAY, ReconcileDelay
from fairlead.apiserver.endpoints.request_scope import ComputedObjects
from fairlead.apiserver.endpoints.server import ApiServer, Document
from fairlead.apiserver.kind import COMPONENT_STATUS, Kind
from fairlead.apiserver.openapi.documents import OpenApi
from fairlead.apiserver.printers.table import table
from fairlead.apiserver.protobuf.decoder import decode
from fairlead.apiserver.registry.served_kinds import ServedKinds, built_in_kinds
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.schema.encoding_order import ordered, ordered_by_name
from fairlead.apiserver.schema.model import schema_of


def complete_server(  # noqa: PLR0913 - the parts of a server
    store: Store,
    *,
    clock: Callable[[], int],
    address: str,
    version: str,
    authorize: Authorize = allow_all,
    identity: Identity | None = None,
    components: tuple[Json, ...] = ONE_PROCESS,
    computed: Mapping[Kind, ComputedObjects] = NOTHING_COMPUTED,
    delays: ReconcileDelay = NO_DELAY,
    gates: Collection[str] = (),
) -> ApiServer:
    """Return an API server that serves the objects in `store`.

    `address` is the host and port in discovery documents. `version` is the version of Fairlead.
    `components` are the componentstatuses, which are computed, not stored. `computed` contains the
    ComputedObjects of all other computed kinds. `gates` are the enabled feature gates, which add
    kinds. The remaining arguments are those of `ApiServer`.
    """
    store.storage.arranged = _in_schema_order
    registry = ServedKinds((*built_in_kinds(gates), *computed))
    documents: list[Document] = [
        Documents(registry, address, version, lambda: store.storage.problem),
        OpenApi(registry, version),
    ]
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
        computed={COMPONENT_STATUS: Components(components), **computed},
        identity=identity,
        delays=delays,
    )


def _in_schema_order(kind: Kind, obj: Json, before: Json | None) -> Json:
    """Return `obj` with its fields in the order of its type's declaration, as in upstream's JSON.

    Fields of custom resources are sorted by name.
    """
    schema = None if kind.is_custom else schema_of(kind.stored_as, kind.kind)
    made: Json = ordered_by_name(obj) if schema is None else ordered(schema, obj, before)
    return made
