"""TemplateSpecs: recognizes workloads whose pod templates differ only in metadata and images.

For example, the templates of a Deployment and its ReplicaSets usually have specs with the same JSON
text, apart from the images. Only the spec of the first of these workloads is decoded and checked.
The other workloads share its Python objects. No check reads an image.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from fairlead.api.json import Json
from fairlead.apiserver.validation.apps.workload import Replicated

_IMAGE_KEY: Final = b'"image"'
# An image whose JSON text equals its value.
_IMAGE: Final = re.compile(rb'"image":\s*"([!#-\[\]-~]+)"')
_ESCAPED_LETTER: Final = b"\\u006"  # begins the escapes of the letters in "image"


class TemplateSpec(msgspec.Struct, frozen=True):
    """The text of a template's spec: its `images`, and the `rest` of the text."""

    images: list[str]
    rest: bytes

    @classmethod
    def of(cls, text: bytes) -> TemplateSpec:
        """Split `text`, the text of a spec, into the images and the rest."""
        parts = _IMAGE.split(text)
        images = b"\n".join(parts[1::2]).decode().split("\n") if len(parts) > 1 else []
        return cls(images, _IMAGE_KEY.join(parts[::2]))


class TemplateSpecs:
    """Workloads of one dump, each found by the pod spec of its template without the images."""

    def __init__(self) -> None:
        # The first workload with a spec, by `TemplateSpec.rest`.
        self._known: dict[bytes, Replicated] = {}

    def find(self, spec: TemplateSpec) -> Replicated | None:
        """Return a workload whose pod spec equals `spec` apart from images; None if none does."""
        return self._known.get(spec.rest)

    def learn(self, spec: TemplateSpec, workload: Replicated) -> None:
        """Keep `workload`; `find` will return it for specs that differ from `spec` only in images.

        `workload` has the spec `spec`, and is in the form that an API server stores (`StoredForm`).
        It is not kept if `spec` contains images other than those of the containers, such as the
        image of a volume.
        """
        images = [one["image"] for one in workload.spec.template["spec"]["containers"]]
        has_others = spec.rest.count(_IMAGE_KEY) > len(images) or _ESCAPED_LETTER in spec.rest
        if images == spec.images and not has_others:
            self._known[spec.rest] = workload


def with_images(spec: Json, images: Sequence[str]) -> Json:
    """Return the spec of a pod template with `images` in its containers."""
    containers = [
        {**one, "image": image} for one, image in zip(spec["containers"], images, strict=True)
    ]
    return {**spec, "containers": containers}
