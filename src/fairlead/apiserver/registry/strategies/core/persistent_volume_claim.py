"""The strategy of PersistentVolumeClaims.

If only one of dataSource and dataSourceRef is set, the server copies it to the other.

upstream: pkg/registry/core/persistentvolumeclaim/strategy.go,
pkg/api/persistentvolumeclaim/util.go:DropDisabledFields,
EnforceDataSourceBackwardsCompatibility and NormalizeDataSources
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.registry.strategies.core.persistent_volume import (
    STORAGE_CLASS_ANNOTATION,
    STORAGE_CLASS_WARNING,
)
from fairlead.apiserver.registry.strategy import PreparationContext, ResourceStrategy
from fairlead.apiserver.registry.warning.pod import claim_warnings
from fairlead.apiserver.validation.core.volume.claim import is_kept_source
from fairlead.apiserver.validation.core.volume.persistent_volume import (
    check_claim,
    check_claim_update,
)
from fairlead.apiserver.validation.meta.format import dns_subdomain_problems
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check
from fairlead.apiserver.validation.status import check_claim_status

_SOURCE: Final = "dataSource"
_REFERENCE: Final = "dataSourceRef"


def _prepare_for_create(claim: Json, _: PreparationContext) -> Json:
    return {**claim, "spec": _sourced(claim["spec"], {})}


def _prepare_for_update(old: Json, new: Json, _: PreparationContext) -> Json:
    return {**new, "spec": _sourced(new["spec"], old["spec"])}


def _sourced(spec: Json, before: Json) -> Json:
    """Return `spec` with dataSource and dataSourceRef as the server stores them.

    `before` is the previous spec of the claim. An unsupported source is dropped, unless the same
    field was already set in `before`. If only one of the two fields is then set, it is copied to
    the other. A dataSourceRef with a namespace is not copied.
    """
    source, reference = spec.get(_SOURCE), spec.get(_REFERENCE)
    is_cross_namespace = reference is not None and bool(reference.get("namespace"))
    if is_cross_namespace and before.get(_REFERENCE) is None:  # an alpha feature, disabled here
        reference, is_cross_namespace = None, False
    if source is not None and before.get(_SOURCE) is None and not is_kept_source(source):
        source = None
    if reference is None:
        reference = source
    elif source is None and not is_cross_namespace:
        source = {key: reference[key] for key in reference if key != "namespace"}
    sources = {_SOURCE: source, _REFERENCE: reference}
    rest = {key: value for key, value in spec.items() if key not in sources}
    return {**rest, **{key: value for key, value in sources.items() if value is not None}}


def _has_unpersisted_defaults(_: Json, __: Json) -> bool:
    return True


def _warnings(_: Json | None, claim: Json) -> Iterator[str]:
    if STORAGE_CLASS_ANNOTATION in (claim["metadata"].get("annotations") or {}):
        yield f"metadata.annotations[{STORAGE_CLASS_ANNOTATION}]: {STORAGE_CLASS_WARNING}"
    yield from claim_warnings("spec", claim["spec"])


STRATEGY: Final = ResourceStrategy(
    prepare_for_create=_prepare_for_create,
    has_unpersisted_defaults=_has_unpersisted_defaults,
    prepare_for_update=_prepare_for_update,
    rules=KindRules(
        name=dns_subdomain_problems,
        new=json_check(check_claim),
        update=check_claim_update,
        subresources={"status": check_claim_status},
    ),
    returns_deleted_object=True,
    warnings=_warnings,
)
