"""The labels of AWS instance types, as Karpenter's provider for AWS sets them on its nodes.

    labels_of_listed   all labels, from the output of `aws ec2 describe-instance-types`
    labels_of_named    the labels that follow from the name and the size of a type

A value "" means that nodes of the type do not have the label.

source: karpenter-provider-aws pkg/providers/instancetype/types.go: computeRequirements
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.api.objects import ResourceList
from fairlead.engine.autoscaling.karpenter.state.statenode import amounts

AWS: Final = "karpenter.k8s.aws"
EKS: Final = "eks.amazonaws.com"  # EKS Auto Mode

_NAME: Final = re.compile(r"([a-z]+)(?:-[0-9]+tb)?([0-9]+)[^.]*\.[^.]+")
_GPU: Final = "nvidia.com/gpu"
_GPU_FACTS: Final = ("gpu-name", "gpu-manufacturer", "gpu-count", "gpu-memory")
_ACCELERATOR_FACTS: Final = ("accelerator-name", "accelerator-manufacturer", "accelerator-count")
_MIB: Final = 1 << 20


def labels_of_listed(row: Json) -> dict[str, str]:
    """Return the labels of a type from the output of `aws ec2 describe-instance-types`."""
    found = dict(_facts_of_name(row["InstanceType"]))
    found["cpu"] = str(row["VCpuInfo"]["DefaultVCpus"])
    found["memory"] = str(row["MemoryInfo"]["SizeInMiB"])
    found["hypervisor"] = str(row.get("Hypervisor", ""))
    network = row.get("NetworkInfo", {})
    encrypts = bool(network.get("EncryptionInTransitSupported", False))
    found["encryption-in-transit-supported"] = str(encrypts).lower()
    storage = row.get("InstanceStorageInfo", {})
    has_nvme = storage.get("NvmeSupport", "unsupported") != "unsupported"
    found["local-nvme"] = str(storage["TotalSizeInGB"]) if has_nvme else ""
    processor = row.get("ProcessorInfo", {})
    found["cpu-manufacturer"] = _kebab(processor.get("Manufacturer", ""))
    ebs = row.get("EbsInfo", {})
    is_optimized = ebs.get("EbsOptimizedSupport") == "default"
    bandwidth = ebs.get("EbsOptimizedInfo", {}).get("MaximumBandwidthInMbps", "")
    found["ebs-bandwidth"] = str(bandwidth) if is_optimized else ""
    found |= dict.fromkeys((*_GPU_FACTS, *_ACCELERATOR_FACTS), "")
    gpus = row.get("GpuInfo", {}).get("Gpus", ())
    if len(gpus) == 1:
        found |= _facts_of_device("gpu", gpus[0])
        found["gpu-memory"] = str(gpus[0].get("MemoryInfo", {}).get("SizeInMiB", ""))
    accelerators = row.get("InferenceAcceleratorInfo", {}).get("Accelerators", ())
    if len(accelerators) == 1:
        found |= _facts_of_device("accelerator", accelerators[0])
    return {f"{AWS}/instance-{fact}": value for fact, value in found.items()}


def labels_of_named(group: str, name: str, capacity: ResourceList) -> dict[str, str]:
    """Return the labels that follow from the name and the size of an AWS type.

    Return {} if `name` is not in the form of an AWS type.
    """
    found = dict(_facts_of_name(name))
    if not found:
        return {}
    size = amounts(capacity)
    found["cpu"] = str(-(-size.get("cpu", 0) // 1000))
    found["memory"] = str(size.get("memory", 0) // _MIB)
    count = size.get(_GPU, 0)
    if count:
        found |= {"gpu-manufacturer": "nvidia", "gpu-count": str(count)}
    else:
        found |= dict.fromkeys(_GPU_FACTS, "")
    return {f"{group}/instance-{fact}": value for fact, value in found.items()}


def _facts_of_device(kind: str, device: Json) -> dict[str, str]:
    return {
        f"{kind}-name": _kebab(device.get("Name", "")),
        f"{kind}-manufacturer": _kebab(device.get("Manufacturer", "")),
        f"{kind}-count": str(device.get("Count", "")),
    }


def _kebab(text: str) -> str:
    return text.lower().replace(" ", "-")


def _facts_of_name(name: str) -> Iterator[tuple[str, str]]:
    """Yield (fact, value) for the facts in the name of an AWS type, such as `m6i.xlarge`."""
    match = _NAME.fullmatch(name)
    if match:
        yield "category", match[1]
        yield "generation", match[2]
        family, _, size = name.partition(".")
        yield "family", family
        yield "size", size
