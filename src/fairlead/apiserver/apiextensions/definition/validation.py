"""Validates CustomResourceDefinitions.

If all versions have the same schema, the paths of errors in the schema start with `spec.validation`
instead of `spec.versions[N].schema`. The paths of errors in columns, subresources and selectable
fields are shortened in the same way. For example, errors of subresources that all versions share
start with `spec.subresources`. The short paths are from v1beta1, in which the spec could contain
the parts that all versions share.

upstream: apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.label import subdomain_problems
from fairlead.apiserver.apiextensions.definition.field_path import FieldPathError, field_at
from fairlead.apiserver.apiextensions.definition.rule_cost import ExpressionLengthBudget
from fairlead.apiserver.apiextensions.definition.schema_validation import schema_causes
from fairlead.apiserver.error import Cause
from fairlead.apiserver.gotext.definition import shown_versions
from fairlead.apiserver.validation.admissionregistration.webhook import check_client, check_reviews
from fairlead.apiserver.validation.meta.field import (
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.meta.format import dns_1035_problems, too_many

APPROVED: Final = "api-approved.kubernetes.io"
_PROTECTED: Final = re.compile(r"(.*\.)?(k8s|kubernetes)\.io")
_APPROVAL: Final = (
    f'protected groups must have approval annotation "{APPROVED}", '
    "see https://github.com/kubernetes/enhancements/pull/1111"
)
_APPROVAL_URL: Final = re.compile(r"[A-Za-z][-+.A-Za-z0-9]*://[^/?#\s]+\S*")
_REVIEWS: Final = ("v1", "v1beta1")
_WARNING_MAX: Final = 256
_MISSING_STORED_VERSION: Final = (
    "missing from spec.versions; {0} was previously a storage version, and must remain in "
    "spec.versions until a storage migration ensures no data remains persisted in {0} and removes "
    "{0} from status.storedVersions"
)


def causes(definition: Json, length_budget: ExpressionLengthBudget | None) -> Iterator[Cause]:
    """Yield the errors of `definition`. Its defaults must be set.

    If `length_budget` is None, the CEL rules are not compiled.
    """
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    yield from _name_causes(definition, spec, names)
    yield from _group_causes(spec)
    if not spec.get("scope"):
        yield required("spec.scope")
    elif spec["scope"] not in ("Cluster", "Namespaced"):
        yield not_supported("spec.scope", spec["scope"], ("Cluster", "Namespaced"))
    yield from _version_causes(spec)
    if spec.get("preserveUnknownFields"):
        problem = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead"
        )
        yield invalid("spec.preserveUnknownFields", True, problem)  # noqa: FBT003 - the value itself
    yield from _conversion_causes(spec)
    yield from _names_causes(names)
    yield from _version_part_causes(spec, length_budget)
    stored = (definition.get("status") or {}).get("storedVersions") or []
    yield from _stored_version_causes(stored, spec.get("versions") or [])
    yield from _approval_causes(definition, spec)


def changed_causes(old: Json, new: Json) -> Iterator[Cause]:
    """Yield an error for each immutable field that an update changes.

    The group and the plural name are always immutable. The scope and the kind are immutable once
    the definition is Established.
    """
    before, after = old["spec"], new["spec"]
    conditions = (old.get("status") or {}).get("conditions") or ()
    is_established_before = any(
        row["type"] == "Established" and row["status"] == "True" for row in conditions
    )
    if is_established_before and before.get("scope") != after.get("scope"):
        yield invalid("spec.scope", after.get("scope", ""), "field is immutable")
    if is_established_before and before["names"].get("kind") != after["names"].get("kind"):
        yield invalid("spec.names.kind", after["names"].get("kind", ""), "field is immutable")
    for path in ("group", "names.plural"):
        value_before, value_after = _value_at(before, path), _value_at(after, path)
        if value_before != value_after:
            yield invalid(f"spec.{path}", value_after, "field is immutable")


def _value_at(spec: Json, path: str) -> Any:
    value: Any = spec
    for name in path.split("."):
        value = value.get(name, "")
    return value


def _name_causes(definition: Json, spec: Json, names: Json) -> Iterator[Cause]:
    name = definition["metadata"].get("name", "")
    for problem in subdomain_problems(name) if name else ():
        yield invalid("metadata.name", name, problem)
    if name != f"{names.get('plural', '')}.{spec.get('group', '')}":
        yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _group_causes(spec: Json) -> Iterator[Cause]:
    group = spec.get("group", "")
    if not group:
        yield required("spec.group")
        return
    problems = subdomain_problems(group)
    if problems:
        yield invalid("spec.group", group, ",".join(problems))
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")


def _version_causes(spec: Json) -> Iterator[Cause]:
    versions = spec.get("versions") or []
    names = [version.get("name", "") for version in versions]
    for index, version in enumerate(versions):
        yield from _label_causes(f"spec.versions[{index}].name", version.get("name", ""))
        for problem in _deprecation_warning_problems(version):
            warning = version["deprecationWarning"]
            yield invalid(f"spec.versions[{index}].deprecationWarning", warning, problem)
    if len(set(names)) < len(names):
        yield _versions_cause(spec, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield _versions_cause(spec, "must have exactly one version marked as storage version")


def _deprecation_warning_problems(version: Json) -> Iterator[str]:
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    if not version.get("deprecated"):
        yield "can only be set for deprecated versions"
        return
    if len(warning.encode()) > _WARNING_MAX:
        yield f"must be <= {_WARNING_MAX} characters long"
    if not warning:
        yield "must not be an empty string"
    bad_index = next(
        (index for index, letter in enumerate(warning) if not letter.isprintable()), None
    )
    if bad_index is not None:
        path = len(warning[:bad_index].encode())
        problem = (
            "must only contain printable UTF-8 characters; non-printable character found at index"
        )
        yield f"{problem} {path}"


def _versions_cause(spec: Json, problem: str) -> Cause:
    return invalid("spec.versions", shown_versions(spec.get("versions") or []), problem)


def _stored_version_causes(stored: list[str], versions: list[Json]) -> Iterator[Cause]:
    if not stored:
        yield invalid("status.storedVersions", None, "must have at least one stored version")
        return
    for version in versions:
        if version.get("storage") and version.get("name") not in stored:
            problem = f"must have the storage version {version.get('name', '')}"
            yield invalid("status.storedVersions", stored, problem)
    names = [version.get("name") for version in versions]
    for index, name in enumerate(stored):
        if name not in names:
            yield invalid(
                f"status.storedVersions[{index}]", name, _MISSING_STORED_VERSION.format(name)
            )


def _conversion_causes(spec: Json) -> Iterator[Cause]:
    conversion, field = spec.get("conversion") or {}, "spec.conversion"
    strategy, webhook = conversion.get("strategy") or "", conversion.get("webhook")
    if not strategy:
        yield required(f"{field}.strategy")
    elif strategy not in ("None", "Webhook"):
        yield not_supported(f"{field}.strategy", strategy, ("None", "Webhook"))
    client = (webhook or {}).get("clientConfig")
    reviews = (webhook or {}).get("conversionReviewVersions") or []
    if strategy == "Webhook":
        if client is None:
            problem = "required when strategy is set to Webhook"
            yield required(f"{field}.webhookClientConfig", problem)
        else:
            yield from check_client(f"{field}.webhookClientConfig", client)
        yield from check_reviews(f"{field}.conversionReviewVersions", reviews, bare=True)
        return
    problem = "should not be set when strategy is not set to Webhook"
    if client is not None:
        yield forbidden(f"{field}.webhookClientConfig", problem)
    if reviews:
        yield forbidden(f"{field}.conversionReviewVersions", problem)


def _names_causes(names: Json) -> Iterator[Cause]:
    for field in ("plural", "singular", "kind", "listKind"):
        if not names.get(field):
            yield required(f"spec.names.{field}")
    for field in ("plural", "singular"):
        if names.get(field):
            yield from _label_causes(f"spec.names.{field}", str(names[field]))
    for field in ("kind", "listKind"):
        name = str(names.get(field) or "")
        problems = dns_1035_problems(name.lower()) if name else ()
        if problems:
            problem = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            yield invalid(f"spec.names.{field}", name, problem)
    for field in ("shortNames", "categories"):
        for index, name in enumerate(names.get(field) or ()):
            yield from _label_causes(f"spec.names.{field}[{index}]", name)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield invalid("spec.names.listKind", names["kind"], "kind and listKind may not be the same")


def _label_causes(field: str, name: str) -> Iterator[Cause]:
    problems = dns_1035_problems(name)
    if problems:
        yield invalid(field, name, ",".join(problems))


def _version_part_causes(
    spec: Json, length_budget: ExpressionLengthBudget | None
) -> Iterator[Cause]:
    """Yield the errors of the schemas, columns, subresources and selectable fields of versions."""
    versions = spec.get("versions") or []
    for path, version in _schemas(versions):
        raw = (version.get("schema") or {}).get("openAPIV3Schema")
        if raw is None:
            yield required(f"{path}.openAPIV3Schema")
            continue
        has_status = "status" in (version.get("subresources") or {})
        schema_path = f"{path}.openAPIV3Schema"
        yield from schema_causes(raw, schema_path, length_budget, has_status=has_status)
    for field, check in (
        ("additionalPrinterColumns", column_causes),
        ("subresources", subresource_causes),
        ("selectableFields", selectable_field_causes),
    ):
        if _are_same(versions, field):
            yield from check(f"spec.{field}", versions[0]) if versions else ()
            continue
        for index, version in enumerate(versions):
            yield from check(f"spec.versions[{index}].{field}", version)


def _schemas(versions: list[Json]) -> Iterator[tuple[str, Json]]:
    """Yield (path of the schema, version) for each of `versions`.

    If all versions have the same schema, yield only `spec.validation` with the first version.
    """
    missing = [(version.get("schema") or {}).get("openAPIV3Schema") is None for version in versions]
    if versions and not any(missing) and _are_same(versions, "schema"):
        yield "spec.validation", versions[0]
        return
    for index, version in enumerate(versions):
        yield f"spec.versions[{index}].schema", version


def _are_same(versions: list[Json], field: str) -> bool:
    return all(version.get(field) == versions[0].get(field) for version in versions)


def _approval_causes(definition: Json, spec: Json) -> Iterator[Cause]:
    annotations = definition["metadata"].get("annotations") or {}
    if not _PROTECTED.fullmatch(spec.get("group", "")):
        return
    approval, field = annotations.get(APPROVED, ""), f"metadata.annotations[{APPROVED}]"
    if not approval:
        yield required(field, _APPROVAL)
    elif not approval.startswith("unapproved") and not _APPROVAL_URL.fullmatch(approval):
        problem = (
            f'protected groups must have approval annotation "{APPROVED}" with either a URL or a '
            'reason starting with "unapproved", see '
            "https://github.com/kubernetes/enhancements/pull/1111"
        )
        yield invalid(field, approval, problem)


# --- versions ------------------------------------------------------------------------------------


_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = (
    *("byte", "date", "date-time", "double", "float", "int32", "int64", "password"),
)
_SELECTABLE_MAX: Final = 8
_SELECTABLE: Final = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with "
    "formats are allowed."
)


def column_causes(field: str, version: Json) -> Iterator[Cause]:
    """Yield the errors of additionalPrinterColumns."""
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        path, path_of_item = column.get("jsonPath", ""), f"{field}[{index}]"
        if not column.get("name"):
            yield required(f"{path_of_item}.name")
        problem = f"must be one of {','.join(_COLUMN_TYPES)}"
        if not column.get("type"):
            yield required(f"{path_of_item}.type", problem)
        elif column["type"] not in _COLUMN_TYPES:
            yield invalid(f"{path_of_item}.type", column["type"], problem)
        if column.get("format") and column["format"] not in _COLUMN_FORMATS:
            problem = f"must be one of {','.join(_COLUMN_FORMATS)}"
            yield invalid(f"{path_of_item}.format", column["format"], problem)
        if not path:
            yield required(f"{path_of_item}.JSONPath")
        else:
            yield from _path_causes(f"{path_of_item}.JSONPath", path)


def _path_causes(field: str, path: str, *roots: str) -> Iterator[Cause]:
    """Yield an error if `path` does not begin with a dot.

    If `roots` are given, `path` must begin with one of them, such as `.spec`.
    """
    if not path.startswith("."):
        yield invalid(field, path, "must be a simple json path starting with .")
    elif roots and not path.startswith(tuple(f"{root}." for root in roots)):
        prefix = "either " if roots[1:] else ""
        yield invalid(field, path, f"should be a json path under {prefix}{' or '.join(roots)}")


def subresource_causes(field: str, version: Json) -> Iterator[Cause]:
    """Yield the errors of the paths in the scale subresource."""
    scale = (version.get("subresources") or {}).get("scale")
    if scale is None:
        return
    for name, root in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        path = scale.get(name, "")
        if not path:
            yield required(f"{field}.scale.{name}")
        else:
            yield from _path_causes(f"{field}.scale.{name}", path, root)
    path = scale.get("labelSelectorPath")
    if path:
        yield from _path_causes(f"{field}.scale.labelSelectorPath", path, ".spec", ".status")


def selectable_field_causes(field: str, version: Json) -> Iterator[Cause]:
    """Yield the errors of selectableFields."""
    raw = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    seen: dict[tuple[str, ...], None] = {}
    for index, selectable_field in enumerate(version.get("selectableFields") or ()):
        path_of_item, path = f"{field}[{index}].jsonPath", selectable_field.get("jsonPath", "")
        if not path:
            yield required(path_of_item)
            continue
        try:
            names, schema = field_at(path, raw, is_plain=True)
        except FieldPathError as cause:
            yield invalid(path_of_item, path, f"is an invalid path: {cause}")
            continue
        if names[:1] == ("metadata",):
            yield invalid(path_of_item, path, "must not point to fields in metadata")
        if schema.get("type") not in ("string", "boolean", "integer"):
            yield invalid(path_of_item, path, _SELECTABLE)
        if names in seen:
            yield duplicate(path_of_item, path)
        seen[names] = None
    if len(seen) > _SELECTABLE_MAX:
        yield too_many(field, len(seen), _SELECTABLE_MAX)
