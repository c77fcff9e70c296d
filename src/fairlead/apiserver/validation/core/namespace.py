"""Namespaces.

upstream: pkg/apis/core/validation/validation.go:ValidateNamespace
"""

from __future__ import annotations

from fairlead.api.json import Json
from fairlead.apiserver.validation.meta.field import Causes
from fairlead.apiserver.validation.meta.object_meta import check_finalizer_names


def check_namespace(obj: Json) -> Causes:
    """A Namespace."""
    yield from check_finalizer_names("spec.finalizers", (obj.get("spec") or {}).get("finalizers"))
