"""Classifies resource names as native or extended.

upstream: pkg/apis/core/v1/helper/helpers.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.label import label_key_problems

NATIVE_PREFIX: Final = "kubernetes.io/"
QUOTA_PREFIX: Final = "requests."


def is_native_resource(name: str) -> bool:
    """Return True if `name` is a native resource, such as `cpu` or `hugepages-2Mi`."""
    return "/" not in name or NATIVE_PREFIX in name


def is_extended_resource(name: str) -> bool:
    """Return True if `name` is the name of an extended resource, such as `nvidia.com/gpu`.

    As in upstream, the name must also be valid with the prefix that quotas use, as in
    `requests.nvidia.com/gpu`.
    """
    if is_native_resource(name) or name.startswith(QUOTA_PREFIX):
        return False
    return not label_key_problems(QUOTA_PREFIX + name)
