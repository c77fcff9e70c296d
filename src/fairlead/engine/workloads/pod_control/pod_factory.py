"""PodFactory: the manifest of a new pod, from its owner's template.

upstream: pkg/controller/controller_utils.go:GetPodFromTemplate
"""

from __future__ import annotations

from typing import Protocol

from fairlead.api.json import Json
from fairlead.engine.workloads.pod_control.pod_set import PodSet, Replacement
from fairlead.engine.workloads.pod_control.pod_template import pod_manifest
from fairlead.engine.workloads.pod_control.rule import DesiredPod


class PodFactory(Protocol):
    """Builds manifests of pods."""

    def manifest(
        self, pods: PodSet, desired: DesiredPod, name: str, replacement: Replacement | None
    ) -> Json:
        """The pod `name` for `desired`, which stands in for the pod of `replacement`."""
        ...


class ServedPodFactory:
    """Pods as clients expect them: with the generateName that their name came from."""

    def manifest(
        self, pods: PodSet, desired: DesiredPod, name: str, replacement: Replacement | None
    ) -> Json:
        """The pod as upstream creates it."""
        prefix = "" if desired.name else f"{desired.prefix or pods.owner.name}-"
        return pod_manifest(
            desired.template, name=name, namespace=pods.namespace, owner=pods.owner, prefix=prefix
        )


class SimulatedPodFactory:
    """Pods with an annotation that names the pod they replace, for reports."""

    def manifest(
        self, pods: PodSet, desired: DesiredPod, name: str, replacement: Replacement | None
    ) -> Json:
        """The pod with `fairlead.dev/replaces` if it is a replacement."""
        original = replacement.original if replacement is not None else ""
        return pod_manifest(
            desired.template,
            name=name,
            namespace=pods.namespace,
            owner=pods.owner,
            replaces=original,
        )
