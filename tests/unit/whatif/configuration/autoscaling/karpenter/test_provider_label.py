"""NodePools select instance types by the labels that Karpenter's providers set on nodes."""

from __future__ import annotations

import json

import pytest

from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type_table import (
    InstanceTypeTable,
)
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaimtemplate import (
    template_requirements,
)
from fairlead.whatif.configuration.autoscaling.karpenter.config import karpenter_config

AWS = "karpenter.k8s.aws"
EKS = "eks.amazonaws.com"
CSV = """name,cpu,memory,gpu
m6i.xlarge,3920m,14Gi,
c7g.medium,1,2Gi,
g5.2xlarge,8,32Gi,1
u-6tb1.metal,448,6Ti,
custom,8,32Gi,
"""
GPU_TYPE = {
    "InstanceType": "g5.12xlarge",
    "VCpuInfo": {"DefaultVCpus": 48},
    "MemoryInfo": {"SizeInMiB": 196608},
    "Hypervisor": "nitro",
    "NetworkInfo": {"EncryptionInTransitSupported": True},
    "InstanceStorageInfo": {"TotalSizeInGB": 3800, "NvmeSupport": "required"},
    "ProcessorInfo": {"SupportedArchitectures": ["x86_64"], "Manufacturer": "AMD"},
    "EbsInfo": {
        "EbsOptimizedSupport": "default",
        "EbsOptimizedInfo": {"MaximumBandwidthInMbps": 16000},
    },
    "GpuInfo": {
        "Gpus": [
            {
                "Name": "A10G",
                "Manufacturer": "NVIDIA",
                "Count": 4,
                "MemoryInfo": {"SizeInMiB": 24576},
            }
        ]
    },
}
SMALL_TYPE = {
    "InstanceType": "t4g.small",
    "VCpuInfo": {"DefaultVCpus": 2},
    "MemoryInfo": {"SizeInMiB": 2048},
    "Hypervisor": "nitro",
}


@pytest.fixture
def configured(found, make, write):
    """Return (the names of the types that a NodePool allows, the notes about labels, the config).

    The NodePool has one requirement on a label of the provider `group`.
    """

    def read(fact, operator, *values, types=CSV, nodes=(), group=AWS):
        key = f"{group}/instance-{fact}"
        reference = {"group": group, "kind": "EC2NodeClass", "name": "default"}
        spec = {
            "nodeClassRef": reference,
            "requirements": [{"key": key, "operator": operator, "values": list(values)}],
        }
        pool = {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "default"},
            "spec": {"template": {"spec": spec}},
        }
        cluster = found(make.node("other"), *(make.node(**one) for one in nodes), pool)
        file = write("types.csv" if isinstance(types, str) else "types.json", _text(types))
        config, notes = karpenter_config("dump", cluster, str(file))
        table = InstanceTypeTable(config.types, config.options.well_known_labels)
        allowed = table.chosen(table.compatible(template_requirements(config.pools[0])))
        return [one.name for one in allowed], [one for one in notes if key in one], config

    return read


def _text(types):
    return types if isinstance(types, str) else json.dumps({"InstanceTypes": types})


@pytest.mark.parametrize("group", [AWS, EKS])
@pytest.mark.parametrize(
    ("requirement", "allowed"),
    [
        (("category", "In", "c", "m"), ["m6i.xlarge", "c7g.medium"]),
        (("generation", "Gt", "6"), ["c7g.medium"]),
        (("family", "NotIn", "g5"), ["m6i.xlarge", "c7g.medium", "u-6tb1.metal"]),
        (("family", "In", "u-6tb1"), ["u-6tb1.metal"]),
        (("size", "In", "2xlarge"), ["g5.2xlarge"]),
        (("cpu", "In", "4"), ["m6i.xlarge"]),
        (("memory", "Lt", "15000"), ["m6i.xlarge", "c7g.medium"]),
        (("gpu-count", "Exists"), ["g5.2xlarge"]),
        (("gpu-manufacturer", "DoesNotExist"), ["m6i.xlarge", "c7g.medium", "u-6tb1.metal"]),
    ],
)
def test_the_name_and_size_of_an_aws_type_state_labels(configured, requirement, allowed, group):
    """A type with another kind of name has no known labels, so all requirements allow it."""
    names, [note], _ = configured(*requirement, group=group)
    assert names == [*allowed, "custom"]
    assert "instance type custom. Fairlead assumes that these types meet" in note


@pytest.mark.parametrize(
    ("requirement", "allowed"),
    [
        (("hypervisor", "In", "nitro"), ["g5.12xlarge", "t4g.small"]),
        (("local-nvme", "Gt", "1000"), ["g5.12xlarge"]),
        (("local-nvme", "DoesNotExist"), ["t4g.small"]),
        (("gpu-name", "In", "a10g"), ["g5.12xlarge"]),
        (("gpu-memory", "In", "24576"), ["g5.12xlarge"]),
        (("cpu-manufacturer", "In", "amd"), ["g5.12xlarge"]),
        (("ebs-bandwidth", "Gt", "15999"), ["g5.12xlarge"]),
        (("encryption-in-transit-supported", "In", "true"), ["g5.12xlarge"]),
        (("memory", "Lt", "4096"), ["t4g.small"]),
    ],
)
@pytest.mark.parametrize("group", [AWS, EKS])
def test_the_listing_of_aws_states_labels(configured, requirement, allowed, group):
    names, notes, config = configured(*requirement, types=[GPU_TYPE, SMALL_TYPE], group=group)
    assert (names, notes) == (allowed, [])
    assert f"{group}/instance-{requirement[0]}" in config.options.well_known_labels


def test_existing_nodes_state_the_labels_of_their_types(configured):
    """A label that only nodes of other types have does not exist on nodes of the type."""
    kind = "node.kubernetes.io/instance-type"
    nodes = [
        {"name": "a", kind: "g5.2xlarge", f"{AWS}/instance-gpu-name": "a10g"},
        {"name": "b", kind: "m6i.xlarge", f"{AWS}/instance-hypervisor": "nitro"},
    ]
    types = CSV.replace("custom,8,32Gi,\n", "")
    names, notes, config = configured("gpu-name", "In", "a10g", types=types, nodes=nodes)
    # GPUs of types without a node have an unknown name; here, every other type has no GPU.
    assert (names, notes) == (["g5.2xlarge"], [])
    assert f"{AWS}/instance-gpu-name" in config.options.well_known_labels
    names, [note], config = configured("hypervisor", "In", "nitro", types=types, nodes=nodes)
    assert names == ["m6i.xlarge", "c7g.medium", "u-6tb1.metal"]
    assert "not known for the instance type c7g.medium, u-6tb1.metal. " in note
    assert f"{AWS}/instance-hypervisor" not in config.options.well_known_labels


def test_columns_of_a_csv_file_state_labels(configured):
    types = f"name,cpu,memory,{AWS}/instance-local-nvme\nm6id.xlarge,4,16Gi,237\nm6i.xlarge,4,16Gi,"
    names, notes, _ = configured("local-nvme", "Gt", "100", types=types)
    assert (names, notes) == (["m6id.xlarge"], [])
