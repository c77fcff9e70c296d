"""What may be wrong with a CustomResourceDefinition itself.

What all versions have in common stands, in refusals, where old definitions had it: directly in
spec.

upstream: apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from fairlead.api.label import subdomain_problems
from fairlead.apiserver.custom.definition_schema import wrong_schema
from fairlead.apiserver.custom.json_path import JsonPathError, json_path
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.field import invalid, not_supported, required

Json = dict[str, Any]

APPROVED: Final = "api-approved.kubernetes.io"
_PROTECTED: Final = re.compile(r"(.*\.)?(k8s|kubernetes)\.io")
_APPROVAL: Final = (
    f'protected groups must have approval annotation "{APPROVED}", '
    "see https://github.com/kubernetes/enhancements/pull/1111"
)
_DNS_1035_FORM: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_DNS_1035: Final = re.compile(_DNS_1035_FORM)
_DNS_1035_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    f"regex used for validation is '{_DNS_1035_FORM}')"
)
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
# A version as upstream's language shows it in a refusal.
_SHOWN: Final = (
    ("Name", "name", ""),
    ("Served", "served", False),
    ("Storage", "storage", False),
    ("Deprecated", "deprecated", False),
    ("DeprecationWarning", "deprecationWarning", None),
)
_HOISTED: Final = ("Schema", "Subresources", "AdditionalPrinterColumns", "SelectableFields")


def causes(definition: Json) -> Iterator[Cause]:
    """What is wrong with a completed definition."""
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    yield from _wrong_name(definition, spec, names)
    yield from _wrong_group(spec)
    if spec.get("scope") not in ("Cluster", "Namespaced"):
        yield not_supported("spec.scope", spec.get("scope", ""), ("Cluster", "Namespaced"))
    yield from _wrong_versions(spec)
    if spec.get("preserveUnknownFields"):
        why = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead"
        )
        yield invalid("spec.preserveUnknownFields", True, why)  # noqa: FBT003 - the value itself
    yield from _wrong_conversion(spec)
    yield from _wrong_names(names)
    yield from _wrong_parts(spec)
    if not (definition.get("status") or {}).get("storedVersions"):
        yield invalid("status.storedVersions", None, "must have at least one stored version")
    yield from _unapproved(definition, spec)


def changed_causes(old: Json, new: Json) -> Iterator[Cause]:
    """What may not change in a definition whose names are accepted."""
    before, after = old["spec"], new["spec"]
    conditions = (old.get("status") or {}).get("conditions") or ()
    established = any(
        row["type"] == "Established" and row["status"] == "True" for row in conditions
    )
    if established and before.get("scope") != after.get("scope"):
        yield invalid("spec.scope", after.get("scope", ""), "field is immutable")
    if established and before["names"].get("kind") != after["names"].get("kind"):
        yield invalid("spec.names.kind", after["names"].get("kind", ""), "field is immutable")
    for path in ("group", "names.plural"):
        was, now = _at(before, path), _at(after, path)
        if was != now:
            yield invalid(f"spec.{path}", now, "field is immutable")


def _at(spec: Json, path: str) -> Any:
    value: Any = spec
    for name in path.split("."):
        value = value.get(name, "")
    return value


def _wrong_name(definition: Json, spec: Json, names: Json) -> Iterator[Cause]:
    name = definition["metadata"].get("name", "")
    if name != f"{names.get('plural', '')}.{spec.get('group', '')}":
        yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _wrong_group(spec: Json) -> Iterator[Cause]:
    group = spec.get("group", "")
    if not group:
        yield required("spec.group")
        return
    for problem in subdomain_problems(group):
        yield invalid("spec.group", group, problem)
    if "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")


def _wrong_versions(spec: Json) -> Iterator[Cause]:
    versions = spec.get("versions") or []
    names = [version.get("name", "") for version in versions]
    for at, name in enumerate(names):
        if not _DNS_1035.fullmatch(name):
            yield invalid(f"spec.versions[{at}].name", name, _DNS_1035_RULE)
    if len(set(names)) < len(names):
        yield _about_versions(spec, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield _about_versions(spec, "must have exactly one version marked as storage version")


def _about_versions(spec: Json, why: str) -> Cause:
    shown = [
        {shown: version.get(name, zero) for shown, name, zero in _SHOWN} | dict.fromkeys(_HOISTED)
        for version in spec.get("versions") or ()
    ]
    text = json.dumps(shown, separators=(",", ":"))
    return Cause("FieldValueInvalid", f"Invalid value: {text}: {why}", "spec.versions")


def _wrong_conversion(spec: Json) -> Iterator[Cause]:
    conversion = spec.get("conversion") or {}
    strategy = conversion.get("strategy", "None")
    if strategy not in ("None", "Webhook"):
        yield not_supported("spec.conversion.strategy", strategy, ("None", "Webhook"))
    if strategy == "Webhook":
        webhook = conversion.get("webhook") or {}
        if not webhook.get("clientConfig"):
            why = "required when strategy is set to Webhook"
            yield required("spec.conversion.webhookClientConfig", why)
        if not webhook.get("conversionReviewVersions"):
            yield required("spec.conversion.conversionReviewVersions")


def _wrong_names(names: Json) -> Iterator[Cause]:
    for field in ("plural", "singular"):
        yield from _wrong_label(f"spec.names.{field}", str(names.get(field, "")))
    for field in ("kind", "listKind"):
        name = str(names.get(field, ""))
        if not _DNS_1035.fullmatch(name.lower()):
            why = f"may have mixed case, but should otherwise match: {_DNS_1035_RULE}"
            yield invalid(f"spec.names.{field}", name, why)
    for field in ("shortNames", "categories"):
        for at, name in enumerate(names.get(field) or ()):
            yield from _wrong_label(f"spec.names.{field}[{at}]", name)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield invalid("spec.names.listKind", names["kind"], "kind and listKind may not be the same")


def _wrong_label(field: str, name: str) -> Iterator[Cause]:
    if not _DNS_1035.fullmatch(name):
        yield invalid(field, name, _DNS_1035_RULE)


def _wrong_parts(spec: Json) -> Iterator[Cause]:
    """Schemas, columns and subresources; those that all versions share are looked at once."""
    versions = spec.get("versions") or []
    for field, old_field, check in (
        ("schema", "spec.validation", _wrong_validation),
        ("additionalPrinterColumns", "spec.additionalPrinterColumns", _wrong_columns),
        ("subresources", "spec.subresources", _wrong_subresources),
    ):
        parts = [version.get(field) for version in versions]
        if field == "schema" and not all(parts):
            missing = [at for at, part in enumerate(parts) if not part]
            for at in missing:
                yield required(f"spec.versions[{at}].schema.openAPIV3Schema")
        elif all(part == parts[0] for part in parts[1:]):
            yield from check(old_field, parts[0]) if parts else ()
        else:
            for at, part in enumerate(parts):
                yield from check(f"spec.versions[{at}].{field}", part)


def _wrong_validation(field: str, schema: Json) -> Iterator[Cause]:
    raw = schema.get("openAPIV3Schema")
    if not raw:
        yield required(f"{field}.openAPIV3Schema")
    else:
        yield from wrong_schema(raw, f"{field}.openAPIV3Schema")


def _wrong_columns(field: str, columns: list[Json] | None) -> Iterator[Cause]:
    for at, column in enumerate(columns or ()):
        path, place = column.get("jsonPath", ""), f"{field}[{at}]"
        if not column.get("name"):
            yield required(f"{place}.name")
        if column.get("type") not in _COLUMN_TYPES:
            why = f"must be one of {','.join(_COLUMN_TYPES)}"
            yield invalid(f"{place}.type", column.get("type", ""), why)
        if not path:
            yield required(f"{place}.JSONPath")
        else:
            yield from _wrong_path(f"{place}.JSONPath", path)


def _wrong_path(field: str, path: str, root: str = "") -> Iterator[Cause]:
    try:
        names = json_path(path).names
    except JsonPathError as cause:
        yield invalid(field, path, str(cause))
        return
    if root and (names is None or names[:1] != (root,)):
        yield invalid(field, path, f"should be a json path under .{root}")


def _wrong_subresources(field: str, parts: Json | None) -> Iterator[Cause]:
    scale = (parts or {}).get("scale")
    if not scale:
        return
    for name, root in (("specReplicasPath", "spec"), ("statusReplicasPath", "status")):
        path = scale.get(name, "")
        if not path:
            yield required(f"{field}.scale.{name}")
        else:
            yield from _wrong_path(f"{field}.scale.{name}", path, root)


def _unapproved(definition: Json, spec: Json) -> Iterator[Cause]:
    annotations = definition["metadata"].get("annotations") or {}
    if _PROTECTED.fullmatch(spec.get("group", "")) and not annotations.get(APPROVED):
        yield required(f"metadata.annotations[{APPROVED}]", _APPROVAL)
