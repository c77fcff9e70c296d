"""Node classes of Karpenter's providers, such as EC2NodeClasses, among objects."""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.whatif.snapshot.manifest import Manifest


def is_node_class(one: Manifest) -> bool:
    """Return whether `one` is a node class of a provider."""
    return one.kind.kind.endswith("NodeClass")


def created_node_classes(
    written: Iterable[Manifest], present: Iterable[Manifest]
) -> list[Manifest]:
    """Return the node classes in `written` that are not in `present`."""
    classes = [one for one in written if is_node_class(one)]
    known = {one.ref for one in present if is_node_class(one)} if classes else set()
    return [one for one in classes if one.ref not in known]
