"""The default StorageClass of a local cluster, for claims that name no class.

The class has the settings that are usual for the default class of a managed cluster. A volume is
provisioned when the first pod that uses the claim is scheduled. The volume can be expanded, and is
deleted with the claim. The simulated provisioner restricts the volume to the zone of that pod's
node. The name of the class is `standard`, as in clusters that the tools kind and minikube create.
"""

from __future__ import annotations

from typing import Final

from fairlead.apiserver.kind import STORAGE_CLASS
from fairlead.engine.plugins.volume_lookup.volume_lookup import WAIT_FOR_FIRST_CONSUMER

DEFAULT_STORAGE_CLASS: Final = {
    "apiVersion": STORAGE_CLASS.api_version,
    "kind": STORAGE_CLASS.kind,
    "metadata": {
        "name": "standard",
        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
    },
    # The name of a CSI driver. Other names would make the volumes host paths.
    "provisioner": "csi.fairlead.dev",
    "reclaimPolicy": "Delete",
    "volumeBindingMode": WAIT_FOR_FIRST_CONSUMER,
    "allowVolumeExpansion": True,
}
