"""Patches that make of an object one that says it is of another kind.

upstream: apimachinery/pkg/runtime/serializer/{json/json.go,versioning/versioning.go}:Decode,
apiextensions-apiserver/pkg/apiserver/conversion/converter.go
"""

from __future__ import annotations

from fairlead.apiserver.kind import Kind
from fairlead.apiserver.serving.body_type import no_conversion, other_kind, type_problem
from fairlead.apiserver.serving.patch_refusal import Shown, invalid_patch
from fairlead.apiserver.storage import Json


def of_its_kind(kind: Kind, shown: Shown) -> Json:
    """What a patch made, of `kind`; what it does not say about itself is what it was.

    Raises ApiError 422.
    """
    made = shown.made
    problem = type_problem(made)
    if problem:
        said = f"couldn't get version/kind; json parse error: json: cannot unmarshal {problem}"
        raise invalid_patch(shown, said)
    stated, name = made.get("apiVersion") or "", made.get("kind") or ""
    if stated.count("/") > 1:
        raise invalid_patch(shown, f"unexpected GroupVersion string: {stated}")
    if kind.is_custom:
        _require_custom(kind, stated, name, shown)
        return made
    stated, name = stated or kind.api_version, name or kind.kind
    if (stated, name) != (kind.api_version, kind.kind):
        raise invalid_patch(shown, no_conversion(stated, name, kind))
    return {**made, "apiVersion": stated, "kind": name}


def _require_custom(kind: Kind, stated: str, name: str, shown: Shown) -> None:
    if not name:
        raise invalid_patch(shown, f"Object 'Kind' is missing in '{shown.text()}'")
    group, _, version = stated.rpartition("/")
    if group != kind.group:
        found = f"{group}/{version}, Kind={name} is unstructured"
        why = f'{found} and is not suitable for converting to "{kind.api_version}"'
        raise invalid_patch(shown, why)
    if version != kind.version:
        why = f"request to convert CR from an invalid group/version: {stated}"
        raise invalid_patch(shown, why)
    if name != kind.kind:
        raise other_kind(shown.made, name, kind)
