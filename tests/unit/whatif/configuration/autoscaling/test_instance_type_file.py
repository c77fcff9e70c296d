"""Instance types from CSV files and from the output of cloud providers' tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Node, ObjectMeta
from fairlead.whatif.configuration.autoscaling.instance_type_file import (
    StatedType,
    assumed_spot_prices,
    instance_types,
    read_instance_types,
)
from fairlead.whatif.input.error import InputError

AWS = {
    "InstanceTypes": [
        {
            "InstanceType": "m5.large",
            "VCpuInfo": {"DefaultVCpus": 2},
            "MemoryInfo": {"SizeInMiB": 8192},
            "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]},
            "SupportedUsageClasses": ["on-demand", "spot"],
            "NetworkInfo": {
                "MaximumNetworkInterfaces": 6,
                "Ipv4AddressesPerInterface": 10,
                "DefaultNetworkCardIndex": 0,
                "NetworkCards": [{"MaximumNetworkInterfaces": 3}, {"MaximumNetworkInterfaces": 3}],
            },
        }
    ]
}
GCLOUD = [
    {"name": "n2-standard-2", "guestCpus": 2, "memoryMb": 8192, "zone": "europe-west1-b"},
    {"name": "n2-standard-2", "guestCpus": 2, "memoryMb": 8192, "zone": "europe-west1-c"},
]
AZURE = [
    {
        "name": "Standard_D2s_v5",
        "resourceType": "virtualMachines",
        "capabilities": [
            {"name": "vCPUs", "value": "2"},
            {"name": "MemoryGB", "value": "8"},
            {"name": "LowPriorityCapable", "value": "True"},
        ],
        "locationInfo": [{"location": "westeurope", "zones": ["1", "2"]}],
    },
    {"name": "Premium_LRS", "resourceType": "disks", "capabilities": []},
]
KWOK = [
    {
        "name": "c-2x-amd64-linux",
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {"cpu": "2", "memory": "4Gi", "pods": "32"},
        "offerings": [
            {
                "Price": 0.05,
                "Available": True,
                "Requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
                    {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z-a"]},
                ],
            }
        ],
    }
]


def read(tmp_path: Path, content: object) -> list[StatedType]:
    """Return the types in a file with this content."""
    path = tmp_path / "types"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_instance_types(str(path), ())


@pytest.mark.parametrize(
    ("content", "name", "zones", "kinds"),
    [
        pytest.param(AWS, "m5.large", (), ("on-demand", "spot"), id="aws"),
        pytest.param(
            GCLOUD,
            "n2-standard-2",
            ("europe-west1-b", "europe-west1-c"),
            ("on-demand", "spot"),
            id="gcloud lists a type for every zone",
        ),
        pytest.param(
            AZURE,
            "Standard_D2s_v5",
            ("westeurope-1", "westeurope-2"),
            ("on-demand", "spot"),
            id="az lists disks, too",
        ),
        pytest.param(KWOK, "c-2x-amd64-linux", ("z-a",), ("spot",), id="kwok"),
    ],
)
def test_listings_of_cloud_providers_are_read(
    tmp_path: Path, content: Any, name: str, zones: tuple[str, ...], kinds: tuple[str, ...]
) -> None:
    """Each listing has one type of two cores."""
    (found,) = read(tmp_path, content)
    assert (found.name, found.zones, found.capacity_types) == (name, zones, kinds)
    (made,) = instance_types([found], ["z-a"])
    assert made.capacity["cpu"] == 2000


def test_an_offering_of_kwok_can_have_several_zones(tmp_path: Path) -> None:
    content = json.loads(json.dumps(KWOK).replace('["z-a"]', '["z-a", "z-b"]'))
    (found,) = read(tmp_path, content)
    assert found.zones == ("z-a", "z-b")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"operator": "In"', '"operator": "NotIn"'),
        ('"operator": "In"', '"operator": []'),
        ('["z-a"]', "[]"),
        ('["z-a"]', '"z-a"'),
        ('["z-a"]', "[3]"),
    ],
)
def test_a_malformed_requirement_of_kwok_is_refused(
    tmp_path: Path, before: str, after: str
) -> None:
    text = json.dumps(KWOK)
    assert before in text
    with pytest.raises(InputError, match="entry 1: has an unknown format: "):
        read(tmp_path, json.loads(text.replace(before, after)))


def test_the_network_interfaces_of_a_type_in_aws_limit_its_pods(tmp_path: Path) -> None:
    """Of 10 addresses on each of 3 interfaces, 27 are for pods; 2 pods use the host's network."""
    [found] = read(tmp_path, AWS)
    assert found.interface_pods == 29


def test_a_csv_file_can_state_what_is_allocatable(tmp_path: Path) -> None:
    [found] = read(tmp_path, "name,cpu,memory,allocatableCpu,allocatableMemory\nm,2,8Gi,1900m,\n")
    assert found.allocatable == {"cpu": "1900m"}
    [made] = instance_types([found], ["z"])
    assert made.allocatable["cpu"] == 1900


def test_a_csv_has_on_demand_and_spot_prices(tmp_path: Path) -> None:
    """One price each for on-demand and spot, in all zones."""
    (found,) = read(tmp_path, "name,cpu,memory,zones,price,spotPrice\nm,2,8Gi,z-a;z-b,0.1,0.04\n")
    (made,) = instance_types([found], [])
    prices = {(one.zone, one.capacity_type): one.price for one in made.offerings}
    assert prices == {
        ("z-a", "on-demand"): 0.1,
        ("z-a", "spot"): 0.04,
        ("z-b", "on-demand"): 0.1,
        ("z-b", "spot"): 0.04,
    }


@pytest.mark.parametrize(
    ("regions", "expected"),
    [
        pytest.param(["eu-1", "", "eu-1"], "eu-1", id="the only region of the nodes"),
        pytest.param(["eu-1", "us-1"], None, id="unknown in a cluster of two regions"),
        pytest.param([""], None, id="unknown if no node has a region"),
    ],
)
def test_new_nodes_are_in_the_region_of_the_other_nodes(
    tmp_path: Path, regions: list[str], expected: str | None
) -> None:
    """The node lifecycle controller counts a zone of two regions as two zones."""
    label = "topology.kubernetes.io/region"
    nodes = [Node(metadata=ObjectMeta(labels={label: one} if one else {})) for one in regions]
    (made,) = instance_types(read(tmp_path, "name,cpu,memory\nm,2,8Gi\n"), ["z-a"], nodes)
    found = made.requirements.find(label)
    assert (None if found is None else found.single) == expected


@pytest.mark.parametrize(
    ("region", "expected"),
    [
        ("europe-west1", ("europe-west1-b", "europe-west1-c")),
        ("europe-west10", ("europe-west10-a",)),
        ("home", ("europe-west1-b", "europe-west1-c", "europe-west10-a")),
    ],
)
def test_zones_of_other_regions_do_not_count(
    tmp_path: Path, region: str, expected: tuple[str, ...]
) -> None:
    """gcloud lists the zones of all regions; if no zone is in the region, the names are unknown."""
    path = tmp_path / "types.csv"
    path.write_text(
        "name,cpu,memory,zones\nm,2,8Gi,europe-west1-b;europe-west1-c;europe-west10-a\n"
    )
    node = Node(metadata=ObjectMeta(labels={"topology.kubernetes.io/region": region}))
    [found] = read_instance_types(str(path), [node])
    assert found.zones == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name,cpu,memory\ng,4,16Gi\nm,4,16Gi\n", ["1", None]),
        ("name,cpu,memory,gpu\ng,4,16Gi,2\nm,4,16Gi,\n", ["2", None]),
        ("name,cpu,memory,gpu\ng,4,16Gi,0\nm,4,16Gi,\n", ["0", None]),
    ],
)
def test_a_type_has_the_gpus_of_a_node_unless_the_file_states_them(
    tmp_path: Path, make: Any, text: str, expected: list[str | None]
) -> None:
    """gcloud lists no GPUs for machines to which a GPU is attached separately."""
    path = tmp_path / "types.csv"
    path.write_text(text)
    node = make.node("a", **{"node.kubernetes.io/instance-type": "g"})
    node["status"]["capacity"] = {"cpu": "4", "nvidia.com/gpu": "1", "pods": "58"}
    old = make.node("b", **{"node.kubernetes.io/instance-type": "g"})
    old["spec"] = {"unschedulable": True}
    nodes = [decode_as(Node, one) for one in (node, old)]
    found = read_instance_types(str(path), nodes)
    assert [one.capacity.get("nvidia.com/gpu") for one in found] == expected
    assert not any("pods" in one.capacity for one in found)


def test_a_price_is_estimated_if_none_is_given(tmp_path: Path) -> None:
    """The estimate grows with the size of the type."""
    small, large = read(tmp_path, "name,cpu,memory\na,2,8Gi\nb,4,16Gi\n")
    assert not small.has_price
    assert 0 < small.price("on-demand", "") < large.price("on-demand", "")


def test_a_note_names_types_whose_spot_price_is_assumed(tmp_path: Path) -> None:
    """Prices of types without any price are estimated, which other notes say."""
    text = "name,cpu,memory,price,spotPrice\na,2,8Gi,1,\nb,2,8Gi,1,0.3\nc,2,8Gi,,\n"
    types = read(tmp_path, text)
    assert types[0].price("spot", "") == pytest.approx(0.4)
    [note] = assumed_spot_prices((one, "spot", "z") for one in types)
    assert note.startswith("--instance-types states no spot price of a. It is assumed to be 40% ")
    assert not [*assumed_spot_prices((one, "on-demand", "z") for one in types)]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param("", "is empty", id="an empty file"),
        pytest.param("name,cpu,memory\n", "contains no instance type", id="only a header"),
        pytest.param("name,cpu\nm,2\n", "has no column 'memory'", id="a column is missing"),
        pytest.param("name,cpu,memory,size\nm,2,8Gi,x\n", "unknown column 'size'", id="unknown"),
        pytest.param(
            "name,cpu,memory,topology.kubernetes.io/zone\nm,2,8Gi,a\n",
            "'topology.kubernetes.io/zone'; write these values in the column 'zones'",
            id="the label of another column",
        ),
        pytest.param(
            "name,cpu,memory,karpenter.sh/nodepool\nm,2,8Gi,a\n",
            "'karpenter.sh/nodepool', but its values do not follow from the instance type",
            id="a label of the node",
        ),
        pytest.param(
            "name,cpu,memory,price\nm,2,8Gi,cheap\n",
            "line 2: price: 'cheap' is not a number",
            id="a price is no number",
        ),
        pytest.param(
            "name,cpu,memory,price\n\nm,2,8Gi,cheap\n",
            "line 3: price: 'cheap' is not a number",
            id="a price is no number after an empty line",
        ),
        pytest.param("name,cpu,memory\nm,2x,8Gi\n", "instance type m: cpu: '2x'", id="no quantity"),
        pytest.param("name,cpu,memory\nm,0,8Gi\n", "must be more than 0", id="no cores"),
        pytest.param(
            "name,cpu,memory\nm,2,16\n",
            "memory: 16 is only 16 bytes; write a unit, such as 16Gi",
            id="memory without a unit",
        ),
        pytest.param(
            "name,cpu,memory\nm,2,16384\n",
            "memory: 16384 is only 16,384 bytes; write a unit, such as 16384Mi",
            id="memory in MiB without a unit",
        ),
        pytest.param(
            "name,cpu,memory,allocatableCpu\nm,2,8Gi,2100m\n",
            "allocatableCpu must be more than 0, and not more than cpu",
            id="more is allocatable than the machine has",
        ),
        pytest.param(
            "name,cpu,memory,allocatableMemory\nm,2,8Gi,much\n",
            "allocatableMemory: 'much': quantities must match",
            id="an allocatable amount that is no quantity",
        ),
        pytest.param(
            "name,cpu,memory\nm,2,8Gi\nm,4,8Gi\n",
            "instance type m: appears twice",
            id="a repeated type",
        ),
        pytest.param(
            "name,cpu,memory\nm,1e30,8Gi\n",
            "instance type m: cpu: 1e30 is not from 0 to 1,000,000",
            id="an excessive number of cores",
        ),
        pytest.param(
            "name,cpu,memory,pods\nm,2,8Gi,-1\n",
            "instance type m: pods: -1 is not from 0 to",
            id="a negative number of pods",
        ),
        pytest.param(
            "name,cpu,memory,gpu\nm,2,8Gi,1500m\n",
            "instance type m: nvidia.com/gpu: 1500m is not a whole number",
            id="half a GPU",
        ),
        pytest.param(
            "name,cpu,memory,price\nm,2,8Gi,nan\n", "the price nan is not a number", id="NaN"
        ),
        pytest.param("name,cpu,memory\nm\0,2,8Gi\n", "is not text", id="NUL in a name"),
        pytest.param(
            "name,cpu,memory\nm x,2,8Gi\n", "'m x' cannot be the value of a node's label", id="name"
        ),
        pytest.param(
            "name,cpu,memory,zones\nm,2,8Gi,b!c\n", "'b!c' cannot be the value", id="zone"
        ),
        pytest.param(
            "name,cpu,memory,capacityType\nm,2,8Gi,sport\n",
            "there is no capacity type 'sport'; did you mean",
            id="capacity type",
        ),
        pytest.param(
            '[{"name": 5, "guestCpus": 2, "memoryMb": 8192}]',
            "5 is not a string",
            id="not a string",
        ),
        pytest.param(
            '[{"name": "m", "resources": {}, "offerings": '
            '[{"Requirements": [{"key": "a", "values": []}]}]}]',
            "has an unknown format: ValueError the requirement ",
            id="an empty list",
        ),
        pytest.param('{"a": 1}', "is not a list of instance types", id="another object"),
        pytest.param(
            '[{"name": [], "guestCpus": 2, "memoryMb": 8192, "zone": "z-a"}]',
            "entry 1: has an unknown format: TypeError",
            id="a name that is no text",
        ),
        pytest.param(
            '[{"a": 1}]', "entry 1: has an unknown format: it lacks 'offerings'", id="another list"
        ),
        pytest.param("[", "is not JSON", id="broken JSON"),
        pytest.param(f"[{'1' * 5000}]", "is not JSON", id="an integer with too many digits"),
    ],
)
def test_bad_files_are_refused_in_one_line(tmp_path: Path, content: str, problem: str) -> None:
    """The line has the file and the problem."""
    with pytest.raises(InputError) as refused:
        read(tmp_path, content)
    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)


HEADER = (
    "EndTimestamp,InstanceID,Region,AssetClass,InstanceIDField,InstanceType,MarketPriceHourly,"
    "Version\n"
)
SIZES = "name,cpu,memory,price\nsmall,2,8Gi,0.9\nlarge,8,32Gi,0.8\n"


def on_demand(path, nodes=()):
    return {one.name: one.price("on-demand", "a") for one in read_instance_types(path, nodes)}


def test_opencost_prices_replace_the_prices_of_instance_types(tmp_path):
    (tmp_path / "types.csv").write_text(SIZES)
    rows = ",,eu-1,node,,small,0.1,\n,,,gpu,gpu.nvidia.com/class,small,7,\n"
    (tmp_path / "prices.csv").write_text(HEADER + rows)
    found = on_demand(f"{tmp_path}/types.csv,{tmp_path}/prices.csv")
    assert found == {"small": 0.1, "large": 0.8}


def test_a_price_file_for_other_types_or_regions_is_refused(tmp_path, make):
    """Otherwise, the answer would say that --instance-types has to state prices."""
    labels = {"node.kubernetes.io/instance-type": "small", "topology.kubernetes.io/region": "eu-1"}
    nodes = [decode_as(Node, make.node("n", **labels))]
    path = tmp_path / "prices.csv"
    path.write_text(HEADER + ",,eu-2,node,,small,0.1,\n,,eu-1,node,,large,0.2,\n")
    with pytest.raises(InputError, match=r"prices.csv: has no price of small; rows for regions"):
        on_demand(str(path), nodes)


def test_a_price_file_alone_sets_the_prices_of_the_instance_types_of_nodes(tmp_path, make):
    kind = "node.kubernetes.io/instance-type"
    region = {"topology.kubernetes.io/region": "eu-1"}
    nodes = [
        decode_as(Node, make.node("n1", **{kind: "small", **region})),
        decode_as(Node, make.node("n2", **{kind: "large", "rack": "r1", **region})),
    ]
    rows = (
        ",,us-1,node,,small,9,\n,,eu-1,node,,small,0.1,\n,r1,,node,metadata.labels.rack,,0.5,\n"
        ",r2,,node,metadata.labels.rack,,0.6,\n"
    )
    path = tmp_path / "prices.csv"
    path.write_text(HEADER + rows)
    found = {one.name: sorted(one.prices.values()) for one in read_instance_types(str(path), nodes)}
    assert found == {"small": [0.1], "large": [0.5]}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEADER + ",,,node,,small,much,\n", "line 2: MarketPriceHourly: 'much' is not a number"),
        (HEADER + ",,,node,,small,-1,\n", "line 2: MarketPriceHourly: -1 is not from 0 to"),
        ("InstanceType,MarketPriceHourly\n", "has no column 'AssetClass'"),
        (HEADER, "has prices only; name a file of instance types before it"),
    ],
)
def test_a_bad_price_file_is_refused(tmp_path, text, says):
    path = tmp_path / "prices.csv"
    path.write_text(text)
    labels = {} if text == HEADER else {"node.kubernetes.io/instance-type": "small"}
    node = decode_as(Node, {"metadata": {"name": "n", "labels": labels}})
    with pytest.raises(InputError, match=says):
        read_instance_types(str(path), [node])
