"""Image names."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import PodSpec
from fairlead.api.pods.image import normalized_image_name, pod_images


@pytest.mark.parametrize(
    ("name", "normalized"),
    [
        ("nginx", "nginx:latest"),
        ("nginx:1.25", "nginx:1.25"),
        ("registry:5000/nginx", "registry:5000/nginx:latest"),
        ("registry:5000/nginx:1", "registry:5000/nginx:1"),
        ("a/b@sha256:00ff", "a/b@sha256:00ff"),
    ],
)
def test_a_name_without_tag_or_digest_gets_the_tag_latest(name, normalized):
    """The port of a registry is not a tag."""
    assert normalized_image_name(name) == normalized


def test_every_use_of_an_image_counts():
    """Containers, init containers and image volumes count, including duplicates."""
    spec = decode_as(
        PodSpec,
        {
            "containers": [{"image": "app:1"}, {"image": "app:1"}],
            "initContainers": [{"image": "setup"}],
            "volumes": [{"name": "data"}, {"name": "model", "image": {"reference": "llm:7"}}],
        },
    )
    assert pod_images(spec) == ("app:1", "app:1", "setup:latest", "llm:7")
