"""JobPodTemplate: the pod template in a JobSet or a Job of Volcano, and objects made from it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import JOB
from fairlead.whatif.input.document import Document
from fairlead.whatif.snapshot.manifest import Manifest


class TemplateMetadata(Struct):
    """The metadata of a template; fields other than labels and annotations have no effect."""

    annotations: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)


class JobPodTemplate(Struct):
    """A pod template; the API server checks its `spec` when a Job with this template is created."""

    spec: Json
    metadata: TemplateMetadata = field(default_factory=TemplateMetadata)


def part_of(owner: Manifest, value: Json, field: str = "") -> Document:
    """Return the object `value`, which is made from the `field` of `owner`, as a document.

    Errors about `value` also name the file, `owner` and `field`, because the user has not written
    `value`.
    """
    return Document(": ".join(filter(None, (owner.source, owner.title, field))), value)


def with_job_defaults(spec: Any) -> Any:
    """Return `spec`, the spec of a Job, with the defaults of the API server.

    Two specs have the same meaning if the results are equal. A malformed spec is returned as it is.
    """
    # Imported only if a JobSet or a Job of Volcano changes.
    from fairlead.apiserver.registry.api_server import API_SERVER  # noqa: PLC0415

    job = {
        "apiVersion": JOB.api_version,
        "kind": JOB.kind,
        "metadata": {"name": "job", "namespace": "default"},
        "spec": spec,
    }
    try:
        return API_SERVER.default(JOB, API_SERVER.decode(JOB, job))["spec"]
    except ApiError:
        return spec
