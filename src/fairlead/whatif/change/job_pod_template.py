"""JobPodTemplate: the pod template in a JobSet or a Job of Volcano."""

from __future__ import annotations

from msgspec import Struct, field

from fairlead.api.json import Json


class TemplateMetadata(Struct):
    """The metadata of a template; other fields than labels and annotations have no effect."""

    annotations: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)


class JobPodTemplate(Struct):
    """A pod template; the API server checks its `spec` when a Job with this template is created."""

    spec: Json
    metadata: TemplateMetadata = field(default_factory=TemplateMetadata)
