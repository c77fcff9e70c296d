"""The fields of custom resources that describe batch workloads: JobSets and kinds of Volcano.

The API server prunes unknown fields of these resources, or refuses the resources, because their
definitions have schemas. A dump often lacks the definitions. So this module lists the fields. The
lists have no types except the types of templates, which are types of Kubernetes. A status is not
checked.

The kinds of kube-batch are left out: their definitions have no schemas, so any field is allowed.

upstream: jobset: api/jobset/v1alpha2/jobset_types.go; volcano:
staging/src/volcano.sh/apis/pkg/apis/batch/v1alpha1/job.go, scheduling/v1beta1/types.go;
scheduler-plugins: apis/scheduling/v1alpha1/types.go
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from fairlead.apiserver.kind import Kind
from fairlead.apiserver.schema.model import ANYTHING, Field, Schema, Type, schemas

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_SELECTOR: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"
_JOB_TEMPLATE: Final = "io.k8s.api.batch.v1.JobTemplateSpec"
_POD_TEMPLATE: Final = "io.k8s.api.core.v1.PodTemplateSpec"
_CLAIM: Final = "io.k8s.api.core.v1.PersistentVolumeClaim"
_CLAIM_SPEC: Final = "io.k8s.api.core.v1.PersistentVolumeClaimSpec"


def _fields(names: str, **others: Any) -> dict[str, Any]:
    """Return an object with the fields `names` of any type, and with `others`."""
    return dict.fromkeys(names.split()) | others


# In these tables, an object is a dict of its fields, and a list has the type of its items as its
# only item. A text is the name of a type of Kubernetes, and None stands for any value.
_NETWORK_TOPOLOGY: Final = _fields("mode highestTierAllowed highestTierName")
_POLICY: Final = _fields("action event events exitCode timeout")
_NODE_GROUPS: Final = _fields(
    "requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution"
)
_JOB_SET: Final = _fields(
    "suspend managedBy ttlSecondsAfterFinished",
    replicatedJobs=[
        _fields(
            "name groupName replicas", template=_JOB_TEMPLATE, dependsOn=[_fields("name status")]
        )
    ],
    network=_fields("enableDNSHostnames subdomain publishNotReadyAddresses"),
    successPolicy=_fields("operator targetReplicatedJobs"),
    failurePolicy=_fields(
        "maxRestarts restartStrategy",
        rules=[
            _fields(
                "name action onJobFailureReasons onJobFailureMessagePatterns targetReplicatedJobs"
            )
        ],
    ),
    startupPolicy=_fields("startupPolicyOrder"),
    coordinator=_fields("replicatedJob jobIndex podIndex"),
    volumeClaimPolicies=[
        {"templates": [_CLAIM], "retentionPolicy": _fields("whenDeleted")},
    ],
)
_VOLCANO_JOB: Final = _fields(
    "schedulerName minAvailable plugins runningEstimate queue maxRetry ttlSecondsAfterFinished "
    "priorityClassName minSuccess",
    volumes=[_fields("mountPath volumeClaimName", volumeClaim=_CLAIM_SPEC)],
    tasks=[
        _fields(
            "name replicas minAvailable topologyPolicy maxRetry",
            template=_POD_TEMPLATE,
            policies=[_POLICY],
            dependsOn=_fields("name iteration"),
            partitionPolicy=_fields(
                "totalPartitions partitionSize minPartitions", networkTopology=_NETWORK_TOPOLOGY
            ),
        )
    ],
    policies=[_POLICY],
    networkTopology=_NETWORK_TOPOLOGY,
)
_VOLCANO_POD_GROUP: Final = _fields(
    "minMember minTaskMember queue priorityClassName minResources",
    networkTopology=_NETWORK_TOPOLOGY,
    subGroupPolicy=[
        _fields(
            "name subGroupSize minSubGroups matchLabelKeys",
            networkTopology=_NETWORK_TOPOLOGY,
            labelSelector=_SELECTOR,
        )
    ],
)
_VOLCANO_QUEUE: Final = _fields(
    "weight capability reclaimable type parent deserved priority dequeueStrategy",
    extendClusters=[_fields("name weight capacity")],
    guarantee=_fields("resource"),
    affinity={"nodeGroupAffinity": _NODE_GROUPS, "nodeGroupAntiAffinity": _NODE_GROUPS},
    dra=_fields("capability deserved guarantee"),
)
_SPECS: Final[Mapping[tuple[str, str], Any]] = {
    ("jobset.x-k8s.io", "JobSet"): _JOB_SET,
    ("batch.volcano.sh", "Job"): _VOLCANO_JOB,
    ("scheduling.volcano.sh", "PodGroup"): _VOLCANO_POD_GROUP,
    ("scheduling.volcano.sh", "Queue"): _VOLCANO_QUEUE,
    ("scheduling.x-k8s.io", "PodGroup"): _fields("minMember minResources scheduleTimeoutSeconds"),
}


def batch_schema(kind: Kind) -> Schema | None:
    """Return the fields of the custom resources of `kind`; None if they are not listed here."""
    return _schema(kind.group, kind.kind)


@cache
def _schema(group: str, kind: str) -> Schema | None:
    spec = _SPECS.get((group, kind))
    if spec is None:
        return None
    return _made(_fields("apiVersion kind status", metadata=_META, spec=spec))


def _made(form: Any) -> Schema:
    match form:
        case dict():
            fields = {name: Field(_made(each)) for name, each in form.items()}
            return Schema(Type.OBJECT, fields=fields)
        case [item]:
            return Schema(Type.LIST, items=_made(item))
        case str():
            return schemas().of_definition(form)
        case _:
            return ANYTHING
