"""Warns clients about `fairlead.dev/` annotations that have no effect.

An example is `kubectl annotate node n fairlead.dev/kubelet=stoped`, in which `stopped` is
misspelled. Without a warning, the command would seem to work, although the node does not fail.
"""

from __future__ import annotations

from typing import ClassVar

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.storage.storage import Storage
from fairlead.worlds.fairlead_annotation import FAIRLEAD_PREFIX, annotation_warnings

_WRITES = (Operation.CREATE, Operation.UPDATE)


class AnnotationWarnings:
    """An admission plugin that warns about annotations that have no effect; accepts all objects."""

    CHECKS_ONLY: ClassVar[bool] = True

    def admit(self, attributes: AdmissionAttributes, _storage: Storage) -> Json:
        """Return the object; warn about each of its annotations that has no effect."""
        is_write = attributes.operation in _WRITES and not attributes.subresource
        if is_write and attributes.write.user is not None and _has_own(attributes.obj):
            for warning in annotation_warnings(attributes.obj, attributes.old):
                attributes.write.warn(warning)
        return attributes.obj


def _has_own(obj: Json) -> bool:
    """Return whether `obj` or its pod template has a `fairlead.dev/` annotation; few objects do."""
    spec = obj.get("spec")  # of any type in a custom resource
    template = spec.get("template") if isinstance(spec, dict) else None
    for part in (obj, template):
        meta = part.get("metadata") if isinstance(part, dict) else None
        notes = meta.get("annotations") if isinstance(meta, dict) else None
        if isinstance(notes, dict) and any(key.startswith(FAIRLEAD_PREFIX) for key in notes):
            return True
    return False
