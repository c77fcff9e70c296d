"""Which admission plugins there are, in the order in which they are asked."""

from __future__ import annotations

from typing import Final

from fairlead.apiserver.admission.plugin import AdmissionPlugin
from fairlead.apiserver.admission.priority import Priority

# upstream: pkg/kubeapiserver/options/plugins.go:AllOrderedPlugins has the full order.
ADMISSION: Final[tuple[AdmissionPlugin, ...]] = (
    Priority(),  # before anything that looks at a pod's priority
)
