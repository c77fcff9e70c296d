"""The strategies of storage.k8s.io.

upstream: pkg/registry/storage/*/strategy.go,
pkg/apis/storage/validation/validation.go
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.api.quantity import canonical, parse_quantity
from fairlead.apiserver.kind import (
    CSI_NODE,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
    VOLUME_ATTRIBUTES_CLASS,
)
from fairlead.apiserver.registry.strategy import ONLY_MANAGED_FIELDS, ResourceStrategy
from fairlead.apiserver.registry.warning.pod import OLD_LABELS
from fairlead.apiserver.validation.core.volume import persistent_volume
from fairlead.apiserver.validation.core.volume.persistent_volume import (
    check_inline_volume,
    check_parameters,
)
from fairlead.apiserver.validation.core.volume.projected import check_token_life
from fairlead.apiserver.validation.core.volume.source import check_driver_name
from fairlead.apiserver.validation.meta.field import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    repeated_indexes,
    required,
)
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import (
    check_qualified_name,
    check_subdomain,
    check_unchanged,
    dns_subdomain_problems,
    label_selector,
)
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check
from fairlead.apiserver.validation.meta.selector import check_label_selector

# --- validation ----------------------------------------------------------------------------------

LIFECYCLES: Final = ("Persistent", "Ephemeral")
NODE_ID_MAX: Final = 256
_ONE_SOURCE: Final = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


def check_node(obj: Json) -> Causes:
    """Yield the errors of a CSINode."""
    names: dict[str, None] = {}
    for index, driver in enumerate((obj.get("spec") or {}).get("drivers") or ()):
        field = f"spec.drivers[{index}]"
        name, node = driver.get("name", ""), driver.get("nodeID", "")
        yield from check_driver_name(f"{field}.name", name)
        yield from check_fields(field, "storage.v1.CSINodeDriver", driver, "nodeID")
        if len(node) > NODE_ID_MAX:
            yield invalid(f"{field}.nodeID", node, f"must be {NODE_ID_MAX} characters or less")
        room = driver.get("allocatable") or {}
        yield from check_fields(
            f"{field}.allocatable", "storage.v1.VolumeNodeResources", room, "count"
        )
        if name in names:
            yield duplicate(f"{field}.name", name)
        names[name] = None
        keys = driver.get("topologyKeys") or []
        again = repeated_indexes(keys)
        for number, key in enumerate(keys):
            if not key:
                yield required(field)
            if number in again:
                yield duplicate(field, key)
            yield from check_qualified_name(field, key)


def check_driver(obj: Json) -> Causes:
    """Yield the errors of a CSIDriver."""
    spec = obj.get("spec") or {}
    yield from check_fields("spec", "storage.v1.CSIDriverSpec", spec, "fsGroupPolicy")
    yield from _check_tokens("spec.tokenRequests", spec.get("tokenRequests") or [])
    for mode in spec.get("volumeLifecycleModes") or ():
        if mode not in LIFECYCLES:
            yield not_supported("spec.volumeLifecycleModes", mode, LIFECYCLES)
    period = "nodeAllocatableUpdatePeriodSeconds"
    yield from check_fields("spec", "storage.v1.CSIDriverSpec", spec, period)


def _check_tokens(field: str, requests: list[Json]) -> Causes:
    audiences: dict[str, None] = {}
    for index, request in enumerate(requests):
        audience = request.get("audience", "")
        if audience in audiences:
            yield duplicate(f"{field}[{index}].audience", audience)
        elif request.get("expirationSeconds") is not None:
            where = f"{field}[{index}].expirationSeconds"
            yield from check_token_life(where, request["expirationSeconds"])
        audiences[audience] = None


def check_capacity(obj: Json) -> Causes:
    """Yield the errors of a CSIStorageCapacity."""
    yield from check_label_selector("nodeTopology", label_selector(obj.get("nodeTopology")))
    yield from check_subdomain("storageClassName", obj.get("storageClassName", ""))
    if obj.get("capacity") is not None:
        amount = parse_quantity(obj["capacity"])
        if amount.nano < 0:
            why = "must be greater than or equal to 0"
            yield invalid("capacity", canonical(amount), why)


def check_attributes_class(obj: Json) -> Causes:
    """Yield the errors of a VolumeAttributesClass."""
    driver, parameters = obj.get("driverName", ""), obj.get("parameters") or {}
    if not driver:
        yield required("driverName")
    else:
        yield from check_qualified_name("driverName", driver.lower())
    yield from check_parameters("parameters", parameters)
    if not parameters:
        yield required("parameters", "must contain at least one key/value pair")


def check_attachment(obj: Json) -> Causes:
    """Yield the errors of a new or updated VolumeAttachment."""
    spec = obj["spec"]
    source = spec.get("source") or {}
    yield from check_fields("spec", "storage.v1.VolumeAttachmentSpec", spec, "attacher")
    named, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    if named is None and inline is None:
        yield required("spec.source", _ONE_SOURCE)
    elif named is not None and inline is not None:
        yield forbidden("spec.source", _ONE_SOURCE)
    elif named == "":
        why = "must specify non empty persistentVolumeName"
        yield required("spec.source.persistentVolumeName", why)
    elif inline is not None:
        yield from check_inline_volume("spec.source.inlineVolumeSpec", inline)
    yield from check_subdomain("spec.nodeName", spec.get("nodeName", ""))


def check_new_attachment(obj: Json) -> Causes:
    """Yield the errors of a new VolumeAttachment, including those of `check_attachment`."""
    yield from check_attachment(obj)
    yield from check_driver_name("spec.attacher", obj["spec"].get("attacher", ""))
    named = (obj["spec"].get("source") or {}).get("persistentVolumeName")
    if named is not None:
        yield from check_subdomain("spec.source.persistentVolumeName", named)


def check_node_update(old: Json, new: Json) -> Causes:
    """Yield an error for each CSINode driver in which a field other than `allocatable` changed."""
    had, wants = ((obj.get("spec") or {}).get("drivers") or () for obj in (old, new))
    for before in had:
        for after in wants:
            if before.get("name") == after.get("name"):
                was, shall = ({**one, "allocatable": None} for one in (before, after))
                yield from check_unchanged("spec.drivers", was, shall, "storage.v1.CSINodeDriver")


_TOKENS_IN_SECRETS: Final = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to "
    "prevent possible logging of tokens in volume attributes"
)


def _storage_class_warnings(_: Json | None, found: Json) -> Iterator[str]:
    # upstream: pkg/api/storage/util.go:GetWarningsForStorageClass
    for index, term in enumerate(found.get("allowedTopologies") or ()):
        for number, expression in enumerate(term.get("matchLabelExpressions") or ()):
            key = expression.get("key", "")
            if key in OLD_LABELS:
                field = f"allowedTopologies[{index}].matchLabelExpressions[{number}].key"
                yield f"{field}: {key} is {OLD_LABELS[key]}"


def _driver_warnings(old: Json | None, new: Json) -> Iterator[str]:
    """Yield a warning if the tokenRequests of a CSIDriver are new or changed.

    If serviceAccountTokenInSecrets is set, there is no warning.
    """
    # upstream: pkg/registry/storage/csidriver/strategy.go:WarningsOnCreate, WarningsOnUpdate
    token_requests = new["spec"].get("tokenRequests") or []
    if not token_requests or new["spec"].get("serviceAccountTokenInSecrets") is not None:
        return
    if old is None or (old["spec"].get("tokenRequests") or []) != token_requests:
        yield _TOKENS_IN_SECRETS


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    "csidrivers.storage.k8s.io": ResourceStrategy(
        allow_unconditional_update=False,
        has_generation_once_changed=True,
        rules=KindRules(
            name=dns_subdomain_problems,
            new=json_check(check_driver),
            reports_changed_twice=True,
        ),
        returns_deleted_object=True,
        warnings=_driver_warnings,
    ),
    CSI_NODE.resource: ResourceStrategy(
        allow_unconditional_update=False,
        rules=KindRules(
            name=dns_subdomain_problems,
            metadata_validations=2,
            metadata_comparisons=1,
            new=json_check(check_node),
            update=check_node_update,
            reports_changed_twice=True,
        ),
        returns_deleted_object=True,
        null_when_empty=(("spec", "drivers"),),
    ),
    "csistoragecapacities.storage.k8s.io": ResourceStrategy(
        allow_unconditional_update=False,
        rules=KindRules(name=dns_subdomain_problems, new=json_check(check_capacity)),
    ),
    STORAGE_CLASS.resource: ResourceStrategy(
        rules=KindRules(
            name=dns_subdomain_problems, new=json_check(persistent_volume.check_storage_class)
        ),
        returns_deleted_object=True,
        warnings=_storage_class_warnings,
    ),
    VOLUME_ATTACHMENT.resource: ResourceStrategy(
        allow_unconditional_update=False,
        metadata_with_status=ONLY_MANAGED_FIELDS,
        rules=KindRules(
            name=dns_subdomain_problems,
            metadata_validations=2,
            metadata_comparisons=1,
            new=json_check(check_new_attachment),
            changed=json_check(check_attachment),
            reports_changed_twice=True,
        ),
        returns_deleted_object=True,
        reset_fields={"status": (("metadata",),)},
    ),
    VOLUME_ATTRIBUTES_CLASS.resource: ResourceStrategy(
        rules=KindRules(
            name=dns_subdomain_problems,
            new=json_check(check_attributes_class),
            reports_update_first=True,
        ),
        returns_deleted_object=True,
    ),
}
