"""Image names in the normalised form in which the plugin ImageLocality compares them."""

from __future__ import annotations

from fairlead.api.objects import PodSpec


def normalized_image_name(name: str) -> str:
    """Return `name` with `:latest` appended if it has neither a tag nor a digest.

    No registry is added: `nginx` and `docker.io/library/nginx` remain different names.
    """
    # upstream: plugins/imagelocality/image_locality.go:normalizedImageName. A colon before the last
    # slash belongs to the registry's port. A colon after it starts a tag or is in a digest.
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def pod_images(spec: PodSpec) -> tuple[str, ...]:
    """Return the normalised names of the images in a pod's containers, init containers and volumes.

    An image that is used twice is listed twice, because ImageLocality counts it twice.
    """
    names = [container.image for container in (*spec.containers, *spec.init_containers)]
    names += [volume.image.reference for volume in spec.volumes if volume.image is not None]
    return tuple(map(normalized_image_name, names))
