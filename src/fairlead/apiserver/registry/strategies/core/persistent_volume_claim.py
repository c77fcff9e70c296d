"""What the volume of a claim begins with, which can be said in two ways.

upstream: pkg/api/persistentvolumeclaim/util.go:DropDisabledFields,
EnforceDataSourceBackwardsCompatibility and NormalizeDataSources
"""

from __future__ import annotations

from fairlead.api.json import Json
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.validation.core.volume.claim import is_kept_source

_SOURCE = "dataSource"
_REFERENCE = "dataSourceRef"


def new_claim(claim: Json, _: Storage) -> Json:
    """A claim as it is stored first: sources that nobody serves are dropped."""
    return {**claim, "spec": _sourced(claim["spec"], {})}


def changed_claim(old: Json, new: Json, _: Storage) -> Json:
    """A claim that changes."""
    return {**new, "spec": _sourced(new["spec"], old["spec"])}


def _sourced(spec: Json, before: Json) -> Json:
    """`spec`, where it was `before`, with what it says in one way said in the other, too."""
    source, reference = spec.get(_SOURCE), spec.get(_REFERENCE)
    is_far = reference is not None and bool(reference.get("namespace"))
    if is_far and before.get(_REFERENCE) is None:  # not in this release
        reference, is_far = None, False
    if source is not None and before.get(_SOURCE) is None and not is_kept_source(source):
        source = None
    if reference is None:
        reference = source
    elif source is None and not is_far:
        source = {key: reference[key] for key in reference if key != "namespace"}
    said = {_SOURCE: source, _REFERENCE: reference}
    rest = {key: value for key, value in spec.items() if key not in said}
    return {**rest, **{key: value for key, value in said.items() if value is not None}}
