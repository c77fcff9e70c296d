"""What may be wrong with a CustomResourceDefinition itself.

What all versions have in common stands, in refusals, where old definitions had it: directly in
spec.

upstream: apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.label import subdomain_problems
from fairlead.apiserver.apiextensions.definition.rule_cost import Reading
from fairlead.apiserver.apiextensions.definition.schema_validation import wrong_schema
from fairlead.apiserver.apiextensions.definition.version_validation import (
    wrong_columns,
    wrong_selectable,
    wrong_subresources,
)
from fairlead.apiserver.error import Cause
from fairlead.apiserver.gotext.definition import shown_versions
from fairlead.apiserver.validation.admissionregistration.webhook import check_client, check_reviews
from fairlead.apiserver.validation.meta.field import forbidden, invalid, not_supported, required
from fairlead.apiserver.validation.meta.format import dns_1035_problems

APPROVED: Final = "api-approved.kubernetes.io"
_PROTECTED: Final = re.compile(r"(.*\.)?(k8s|kubernetes)\.io")
_APPROVAL: Final = (
    f'protected groups must have approval annotation "{APPROVED}", '
    "see https://github.com/kubernetes/enhancements/pull/1111"
)
_APPROVING: Final = re.compile(r"[A-Za-z][-+.A-Za-z0-9]*://[^/?#\s]+\S*")
_REVIEWS: Final = ("v1", "v1beta1")
_WARNING_MAX: Final = 256
_ORPHAN: Final = (
    "missing from spec.versions; {0} was previously a storage version, and must remain in "
    "spec.versions until a storage migration ensures no data remains persisted in {0} and removes "
    "{0} from status.storedVersions"
)


def causes(definition: Json, reading: Reading | None) -> Iterator[Cause]:
    """What is wrong with a completed definition, with its rules if there is a `reading`."""
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    yield from _wrong_name(definition, spec, names)
    yield from _wrong_group(spec)
    if not spec.get("scope"):
        yield required("spec.scope")
    elif spec["scope"] not in ("Cluster", "Namespaced"):
        yield not_supported("spec.scope", spec["scope"], ("Cluster", "Namespaced"))
    yield from _wrong_versions(spec)
    if spec.get("preserveUnknownFields"):
        why = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead"
        )
        yield invalid("spec.preserveUnknownFields", True, why)  # noqa: FBT003 - the value itself
    yield from _wrong_conversion(spec)
    yield from _wrong_names(names)
    yield from _wrong_parts(spec, reading)
    stored = (definition.get("status") or {}).get("storedVersions") or []
    yield from _wrong_stored(stored, spec.get("versions") or [])
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
    for problem in subdomain_problems(name) if name else ():
        yield invalid("metadata.name", name, problem)
    if name != f"{names.get('plural', '')}.{spec.get('group', '')}":
        yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _wrong_group(spec: Json) -> Iterator[Cause]:
    group = spec.get("group", "")
    if not group:
        yield required("spec.group")
        return
    problems = subdomain_problems(group)
    if problems:
        yield invalid("spec.group", group, ",".join(problems))
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")


def _wrong_versions(spec: Json) -> Iterator[Cause]:
    versions = spec.get("versions") or []
    names = [version.get("name", "") for version in versions]
    for at, version in enumerate(versions):
        yield from _wrong_label(f"spec.versions[{at}].name", version.get("name", ""))
        for why in _wrong_warning(version):
            warning = version["deprecationWarning"]
            yield invalid(f"spec.versions[{at}].deprecationWarning", warning, why)
    if len(set(names)) < len(names):
        yield _about_versions(spec, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield _about_versions(spec, "must have exactly one version marked as storage version")


def _wrong_warning(version: Json) -> Iterator[str]:
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
    odd = next((at for at, letter in enumerate(warning) if not letter.isprintable()), None)
    if odd is not None:
        place = len(warning[:odd].encode())
        why = "must only contain printable UTF-8 characters; non-printable character found at index"
        yield f"{why} {place}"


def _about_versions(spec: Json, why: str) -> Cause:
    return invalid("spec.versions", shown_versions(spec.get("versions") or []), why)


def _wrong_stored(stored: list[str], versions: list[Json]) -> Iterator[Cause]:
    if not stored:
        yield invalid("status.storedVersions", None, "must have at least one stored version")
        return
    for version in versions:
        if version.get("storage") and version.get("name") not in stored:
            why = f"must have the storage version {version.get('name', '')}"
            yield invalid("status.storedVersions", stored, why)
    names = [version.get("name") for version in versions]
    for at, name in enumerate(stored):
        if name not in names:
            yield invalid(f"status.storedVersions[{at}]", name, _ORPHAN.format(name))


def _wrong_conversion(spec: Json) -> Iterator[Cause]:
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
            why = "required when strategy is set to Webhook"
            yield required(f"{field}.webhookClientConfig", why)
        else:
            yield from check_client(f"{field}.webhookClientConfig", client)
        yield from check_reviews(f"{field}.conversionReviewVersions", reviews, bare=True)
        return
    why = "should not be set when strategy is not set to Webhook"
    if client is not None:
        yield forbidden(f"{field}.webhookClientConfig", why)
    if reviews:
        yield forbidden(f"{field}.conversionReviewVersions", why)


def _wrong_names(names: Json) -> Iterator[Cause]:
    for field in ("plural", "singular", "kind", "listKind"):
        if not names.get(field):
            yield required(f"spec.names.{field}")
    for field in ("plural", "singular"):
        if names.get(field):
            yield from _wrong_label(f"spec.names.{field}", str(names[field]))
    for field in ("kind", "listKind"):
        name = str(names.get(field) or "")
        problems = dns_1035_problems(name.lower()) if name else ()
        if problems:
            why = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            yield invalid(f"spec.names.{field}", name, why)
    for field in ("shortNames", "categories"):
        for at, name in enumerate(names.get(field) or ()):
            yield from _wrong_label(f"spec.names.{field}[{at}]", name)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield invalid("spec.names.listKind", names["kind"], "kind and listKind may not be the same")


def _wrong_label(field: str, name: str) -> Iterator[Cause]:
    problems = dns_1035_problems(name)
    if problems:
        yield invalid(field, name, ",".join(problems))


def _wrong_parts(spec: Json, reading: Reading | None) -> Iterator[Cause]:
    """Schemas, columns and subresources; those that all versions share are looked at once."""
    versions = spec.get("versions") or []
    for place, version in _schemas(versions):
        raw = (version.get("schema") or {}).get("openAPIV3Schema")
        if raw is None:
            yield required(f"{place}.openAPIV3Schema")
            continue
        has_status = "status" in (version.get("subresources") or {})
        where = f"{place}.openAPIV3Schema"
        yield from wrong_schema(raw, where, reading, has_status=has_status)
    for field, check in (
        ("additionalPrinterColumns", wrong_columns),
        ("subresources", wrong_subresources),
        ("selectableFields", wrong_selectable),
    ):
        if _are_same(versions, field):
            yield from check(f"spec.{field}", versions[0]) if versions else ()
            continue
        for at, version in enumerate(versions):
            yield from check(f"spec.versions[{at}].{field}", version)


def _schemas(versions: list[Json]) -> Iterator[tuple[str, Json]]:
    """Where the schemas stand, each with a version that has it."""
    missing = [(version.get("schema") or {}).get("openAPIV3Schema") is None for version in versions]
    if versions and not any(missing) and _are_same(versions, "schema"):
        yield "spec.validation", versions[0]
        return
    for at, version in enumerate(versions):
        yield f"spec.versions[{at}].schema", version


def _are_same(versions: list[Json], field: str) -> bool:
    return all(version.get(field) == versions[0].get(field) for version in versions)


def _unapproved(definition: Json, spec: Json) -> Iterator[Cause]:
    annotations = definition["metadata"].get("annotations") or {}
    if not _PROTECTED.fullmatch(spec.get("group", "")):
        return
    approval, field = annotations.get(APPROVED, ""), f"metadata.annotations[{APPROVED}]"
    if not approval:
        yield required(field, _APPROVAL)
    elif not approval.startswith("unapproved") and not _APPROVING.fullmatch(approval):
        why = (
            f'protected groups must have approval annotation "{APPROVED}" with either a URL or a '
            'reason starting with "unapproved", see '
            "https://github.com/kubernetes/enhancements/pull/1111"
        )
        yield invalid(field, approval, why)
