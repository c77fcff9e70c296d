"""ExtendedResources: maps each extended resource to the DeviceClass that provides its devices.

Every class provides the resource `deviceclass.resource.kubernetes.io/<class>`, and also the
resource in `spec.extendedResourceName`, if this field is set. If two classes provide the same
resource, the class that was created later is used. If both classes were created at the same time,
the class whose name sorts first is used.

upstream: plugins/dynamicresources/extended: ExtendedResourceCache, DeviceClassMapping
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import DeviceClass
from fairlead.api.resource_name import is_extended_resource

IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
# Marks the special claim for the extended resources of a pod.
CLAIM_ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"


def may_be_devices(resource: str) -> bool:
    """Return whether a DeviceClass can be mapped to the resource.

    upstream: pkg/scheduler/util: IsDRAExtendedResourceName
    """
    return is_extended_resource(resource) or resource.startswith(IMPLICIT_PREFIX)


class ExtendedResources:
    """Maps extended resources to DeviceClasses; falsy if there are no classes."""

    def __init__(self) -> None:
        """Start without classes."""
        self._classes: dict[str, DeviceClass] = {}
        self._class_of: dict[str, str] = {}

    def __bool__(self) -> bool:
        """Return whether there are any classes."""
        return bool(self._class_of)

    def class_of(self, resource: str) -> str | None:
        """Return the name of the class that provides `resource`; None if no class provides it."""
        return self._class_of.get(resource)

    def is_delegated(self, resource: str, allocatable: int) -> bool:
        """Return whether a node provides `resource` only as devices.

        `allocatable` is the amount of `resource` that the node lists.

        upstream: plugins/noderesources/fit.go: shouldDelegateResourceToDRA
        """
        return not allocatable and resource in self._class_of

    def put(self, changed: DeviceClass) -> bool:
        """Add or replace a DeviceClass; return whether the mapping of any resource changed."""
        self._classes[changed.key] = changed
        return self._recompute()

    def remove(self, name: str) -> bool:
        """Remove a DeviceClass; return whether the mapping of any resource changed."""
        return self._classes.pop(name, None) is not None and self._recompute()

    def _recompute(self) -> bool:
        before, self._class_of = self._class_of, {}
        by_name = sorted(self._classes.values(), key=lambda one: one.key, reverse=True)
        for one in sorted(by_name, key=lambda one: one.metadata.creation_timestamp):
            self._class_of[IMPLICIT_PREFIX + one.key] = one.key
            if one.spec.extended_resource_name:
                self._class_of[one.spec.extended_resource_name] = one.key
        return self._class_of != before
