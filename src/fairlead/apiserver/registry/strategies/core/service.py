"""Services: addresses and ports are allocated on create, and kept or released on update.

upstream: pkg/registry/core/service/strategy.go:dropTypeDependentFields,
storage/storage.go:beginCreate, patchAllocatedValues
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.error import Cause
from fairlead.apiserver.registry.strategies.core.service_allocation import (
    EXTERNAL_NAME,
    ON_NODES,
    addressed,
    check_addresses,
    has_health_check,
    refused_service,
    require_name,
    taken_ports,
    with_addresses,
    without,
)
from fairlead.apiserver.registry.strategy import (
    ONLY_MANAGED_FIELDS,
    PreparationContext,
    ResourceStrategy,
    text_field,
)
from fairlead.apiserver.registry.warning.network import service_warnings
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.validation.core.service import check_service, check_service_update
from fairlead.apiserver.validation.meta.field import Causes
from fairlead.apiserver.validation.meta.format import dns_label_problems
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check
from fairlead.apiserver.validation.status import check_service_status

_ADDRESSED: Final = (
    "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy",
)  # fmt: skip


def with_kept_addresses(old: Json, new: Json, storage: Storage, *, dry_run: bool = False) -> Json:
    """Return the updated Service `new` with the cluster IP and node ports that its type uses.

    Values that the update leaves out are taken from `old` if possible; otherwise new ones are
    allocated. A dry run allocates nothing and sets placeholders instead. Raises ApiError 422 if the
    cluster IP changes or a requested address is not available. Raises ApiError 500 if no address is
    left.
    """
    kept = with_kept_values(old, new)
    for cause in moved_address(old, kept):
        raise refused_service(kept, cause)
    return addressed(kept, storage, old["spec"], dry_run=dry_run)


def with_kept_values(old: Json, new: Json) -> Json:
    """Return the updated Service `new`, completed with values of `old`.

    A value is taken from `old` only if `new` needs the value and does not set it. Fields that the
    Service no longer uses are removed. Nothing is allocated, and no value is checked.
    """
    # upstream: pkg/registry/core/service/storage/storage.go:patchAllocatedValues
    before, spec = old["spec"], _without_useless(old["spec"], new["spec"])
    new = {**new, "status": _status_of({**new, "spec": spec})}
    if spec.get("type") == EXTERNAL_NAME:
        return {**new, "spec": without(spec, *_ADDRESSED)}
    if before.get("clusterIP") and not spec.get("clusterIP"):
        kept = {key: before[key] for key in ("clusterIP", "clusterIPs") if key in before}
        spec = {**spec, **kept}
    if before.get("type") in ON_NODES and spec.get("type") in ON_NODES:
        spec = {**spec, "ports": _kept_ports(before, spec)}
    if has_health_check(before) and has_health_check(spec):
        kept_port = {"healthCheckNodePort": before.get("healthCheckNodePort")}
        spec = spec if spec.get("healthCheckNodePort") else {**spec, **kept_port}
    return {**new, "spec": spec}


def moved_address(old: Json, new: Json) -> Causes:
    """Yield an error if the cluster IP of the Service `new` differs from that of `old`."""
    # upstream: pkg/apis/core/validation/validation.go:validateUpgradeDowngradeClusterIPs
    before, spec = old["spec"], new["spec"]
    if EXTERNAL_NAME in (before.get("type"), spec.get("type")):
        return
    if before.get("clusterIP") not in (None, "", spec.get("clusterIP")):
        shown = f'["{spec.get("clusterIP", "")}"]'
        text = f"Invalid value: {shown}: may not change once set"
        yield Cause("FieldValueInvalid", text, "spec.clusterIPs[0]")


def _without_useless(before: Json, spec: Json) -> Json:
    """Return `spec` without the fields that the Service no longer uses.

    `before` is the spec before the update. A field is removed only if `before` used the field and
    the update did not change its value. If the new type of the Service has no node ports, all node
    ports are removed, unless the update also adds a node port.
    """
    # upstream: pkg/registry/core/service/strategy.go:dropTypeDependentFields
    useless = [
        key
        for key, needs in _NEEDED.items()
        if key in spec and needs(before) and not needs(spec) and spec[key] == before.get(key)
    ]
    spec = without(spec, *useless)
    if before.get("type") not in ON_NODES or spec.get("type") in ON_NODES:
        return spec
    ports = spec.get("ports") or []
    if not ports or not taken_ports([{"ports": ports}]) <= {*taken_ports([before]), None}:
        return spec
    return {**spec, "ports": [without(port, "nodePort") for port in ports]}


def _status_of(service: Json) -> Json:
    """Return the status of a Service; only the type LoadBalancer keeps status.loadBalancer."""
    status: Json = service.get("status") or {}
    return status if _is_balanced(service["spec"]) else {**status, "loadBalancer": {}}


def _is_balanced(spec: Json) -> bool:
    return bool(spec.get("type") == "LoadBalancer")


def _is_reachable(spec: Json) -> bool:
    """Return whether a Service can be reached from outside the cluster."""
    # upstream: pkg/api/service/util.go:ExternallyAccessible
    if spec.get("type") == "ClusterIP":
        return bool(spec.get("externalIPs"))
    return spec.get("type") in ON_NODES


def _kept_ports(before: Json, spec: Json) -> list[Json]:
    """Return the ports of `spec`, with the node ports that the Service had.

    A port without a nodePort gets the nodePort that the port with the same name has in `before`. If
    another port of `spec` already uses this nodePort, it is not assigned again.
    """
    # upstream: pkg/registry/core/service/storage/storage.go:patchAllocatedValues
    ports = spec.get("ports") or []
    used = {port.get("nodePort") for port in ports}
    known = {port.get("name", ""): port.get("nodePort") for port in before.get("ports") or ()}
    kept = []
    for port in ports:
        number = known.get(port.get("name", ""))
        if not port.get("nodePort") and number and number not in used:
            used.add(number)
            kept.append({**port, "nodePort": number})
        else:
            kept.append(port)
    return kept


# Fields that only some types of Service use.
_NEEDED: Final[Mapping[str, Callable[[Json], bool]]] = {
    "healthCheckNodePort": has_health_check,
    "allocateLoadBalancerNodePorts": _is_balanced,
    "loadBalancerClass": _is_balanced,
    "externalTrafficPolicy": _is_reachable,
}


def _begin_create(service: Json, preparation: PreparationContext) -> None:
    """Refuse a new Service that cannot get its addresses; see `check_addresses`.

    A Service without a name is refused if the server has to choose its cluster IP.
    """
    if service["metadata"].get("name"):
        check_addresses(service, preparation.storage, dry_run=preparation.dry_run)
    else:
        require_name(service, preparation.storage)


def _prepare_for_create(service: Json, preparation: PreparationContext) -> Json:
    return with_addresses(service, preparation.storage, dry_run=preparation.dry_run)


def _prepare_for_update(old: Json, new: Json, preparation: PreparationContext) -> Json:
    return with_kept_addresses(old, new, preparation.storage, dry_run=preparation.dry_run)


def _warnings(_: Json | None, service: Json) -> Iterator[str]:
    return service_warnings(service)


STRATEGY: Final = ResourceStrategy(
    begin_create=_begin_create,
    prepare_for_create=_prepare_for_create,
    allow_create_on_update=True,
    prepare_for_update=_prepare_for_update,
    metadata_with_status=ONLY_MANAGED_FIELDS,
    rules=KindRules(
        name=dns_label_problems,
        new=json_check(check_service),
        update=check_service_update,
        reports_update_first=True,
        subresources={"status": check_service_status},
    ),
    returns_deleted_object=True,
    warnings=_warnings,
    selectable_fields={
        "spec.clusterIP": text_field("spec", "clusterIP"),
        "spec.type": text_field("spec", "type"),
    },
    storage_prefix="services/specs",
)
