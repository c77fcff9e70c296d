"""DaemonSets carry the number of their template's changes in an annotation.

upstream: pkg/apis/apps/v1/conversion.go, pkg/registry/apps/daemonset/strategy.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.storage.storage import Storage

GENERATION: Final = "deprecated.daemonset.template.generation"


def first_template(daemon_set: Json, _: Storage) -> Json:
    """A new DaemonSet."""
    return _with_generation(daemon_set, 1)


def counted_template(old: Json, new: Json, _: Storage) -> Json:
    """A DaemonSet that changes."""
    before = int(old["metadata"].get("annotations", {}).get(GENERATION, "0") or "0")
    changed = old["spec"].get("template") != new["spec"].get("template")
    return _with_generation(new, before + changed)


def _with_generation(daemon_set: Json, generation: int) -> Json:
    meta = daemon_set["metadata"]
    annotations = {**meta.get("annotations", {}), GENERATION: str(generation)}
    return {**daemon_set, "metadata": {**meta, "annotations": annotations}}
