"""Strategies of those kinds of the core group that have no module of their own.

upstream: pkg/registry/core/*/strategy.go
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.registry.strategy import (
    GarbageCollection,
    PreparationContext,
    ResourceStrategy,
    text_field,
)
from fairlead.apiserver.registry.warning.network import endpoints_warnings
from fairlead.apiserver.registry.warning.workload import naming_workload_warnings, workload_warnings
from fairlead.apiserver.validation import status
from fairlead.apiserver.validation.apps import workload
from fairlead.apiserver.validation.core import configuration, resource_quota
from fairlead.apiserver.validation.core.endpoints import check_endpoints
from fairlead.apiserver.validation.core.limit_range import check_limit_range
from fairlead.apiserver.validation.meta.format import dns_subdomain_problems
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check

_ENFORCE_MOUNTABLE_SECRETS: Final = "kubernetes.io/enforce-mountable-secrets"
_MOUNTABLE_SECRETS_DEPRECATED: Final = (
    "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
)

# --- service accounts, secrets and endpoints ----------------------------------------------------


def _with_secret_names_only(account: Json) -> Json:
    # upstream: pkg/registry/core/serviceaccount/strategy.go:cleanSecretReferences
    secrets = account.get("secrets")
    if not secrets:
        return account
    return {**account, "secrets": [{"name": one.get("name", "")} for one in secrets]}


def _new_account(account: Json, _: PreparationContext) -> Json:
    return _with_secret_names_only(account)


def _changed_account(_: Json, new: Json, __: PreparationContext) -> Json:
    return _with_secret_names_only(new)


def _account_warnings(old: Json | None, new: Json) -> Iterator[str]:
    """Yield a warning if a write adds the annotation enforce-mountable-secrets."""
    # upstream: pkg/registry/core/serviceaccount/strategy.go:WarningsOnCreate
    before, after = (
        (one["metadata"].get("annotations") or {}) if one else {} for one in (old, new)
    )
    if _ENFORCE_MOUNTABLE_SECRETS in after and _ENFORCE_MOUNTABLE_SECRETS not in before:
        yield f"metadata.annotations[{_ENFORCE_MOUNTABLE_SECRETS}]: {_MOUNTABLE_SECRETS_DEPRECATED}"


def _secret_warnings(_: Json | None, secret: Json) -> Iterator[str]:
    if secret.get("type") == "kubernetes.io/tls":
        certificate = (secret.get("data") or {}).get("tls.crt", "")
        if b"-----BEGIN" not in base64.b64decode(certificate):
            yield "tls: failed to find any PEM data in certificate input"


def _endpoints_warnings(_: Json | None, endpoints: Json) -> Iterator[str]:
    return endpoints_warnings(endpoints)


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    "componentstatuses": ResourceStrategy(deprecation="v1 ComponentStatus is deprecated in v1.19+"),
    "configmaps": ResourceStrategy(
        rules=KindRules(
            name=dns_subdomain_problems,
            new=json_check(configuration.check_config_map),
            update=configuration.check_config_map_update,
            reports_update_first=True,
        )
    ),
    "endpoints": ResourceStrategy(
        allow_create_on_update=True,
        rules=KindRules(
            name=dns_subdomain_problems,
            metadata_validations=0,
            new=json_check(check_endpoints),
            ratcheted="subsets",  # upstream: ValidateEndpoints
        ),
        deprecation="v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        warnings=_endpoints_warnings,
        storage_prefix="services/endpoints",
    ),
    "limitranges": ResourceStrategy(
        allow_create_on_update=True,
        rules=KindRules(
            name=dns_subdomain_problems,
            metadata_comparisons=1,
            new=json_check(check_limit_range),
        ),
        null_when_empty=(("spec", "limits"),),
    ),
    "podtemplates": ResourceStrategy(
        rules=KindRules(
            name=dns_subdomain_problems,
            metadata_validations=0,
            new=json_check(workload.check_new_pod_template),
        ),
        returns_deleted_object=True,
        warnings=partial(workload_warnings, "template"),
    ),
    "replicationcontrollers": ResourceStrategy(
        rules=KindRules(
            name=dns_subdomain_problems,
            new=workload.check_replication_controller,
            reports_changed_twice=True,
            subresources={"status": status.check_replica_set_status},
        ),
        garbage_collection=GarbageCollection.ORPHAN_DEPENDENTS,
        returns_deleted_object=True,
        warnings=partial(naming_workload_warnings, "spec.template"),
        selectable_fields={"status.replicas": text_field("status", "replicas", absent="0")},
        storage_prefix="controllers",
    ),
    "resourcequotas": ResourceStrategy(
        rules=KindRules(
            name=dns_subdomain_problems,
            metadata_validations=0,
            new=json_check(resource_quota.check_quota),
            update=resource_quota.check_quota_update,
            subresources={"status": status.check_quota_status},
        ),
        returns_deleted_object=True,
    ),
    "secrets": ResourceStrategy(
        rules=KindRules(
            name=dns_subdomain_problems,
            new=json_check(configuration.check_secret),
            update=configuration.check_secret_update,
            reports_update_first=True,
        ),
        warnings=_secret_warnings,
        selectable_fields={"type": text_field("type")},
    ),
    "serviceaccounts": ResourceStrategy(
        prepare_for_create=_new_account,
        prepare_for_update=_changed_account,
        rules=KindRules(name=dns_subdomain_problems),
        returns_deleted_object=True,
        warnings=_account_warnings,
    ),
}
