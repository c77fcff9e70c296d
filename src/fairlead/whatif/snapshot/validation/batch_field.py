"""The fields of custom resources that describe batch workloads: JobSets and kinds of Volcano.

The API server prunes unknown fields of these resources, or refuses the resources, because their
definitions have schemas. A dump often lacks the definitions. So this module lists the fields; those
of PodGroups and Queues are in `batch_definitions`. The lists state no types, except for templates,
whose types are types of Kubernetes. The status is not checked.

The kinds of kube-batch are left out: their definitions have no schemas, so any field is allowed.

upstream: jobset: api/jobset/v1alpha2/jobset_types.go; volcano:
staging/src/volcano.sh/apis/pkg/apis/batch/v1alpha1/job.go
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from fairlead.apiserver.kind import Kind
from fairlead.apiserver.schema.model import ANYTHING, Field, Schema, Type, schemas
from fairlead.worlds.local.bootstrap.batch_definitions import GANG_SPECS, NETWORK_TOPOLOGY, fields

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_JOB_TEMPLATE: Final = "io.k8s.api.batch.v1.JobTemplateSpec"
_POD_TEMPLATE: Final = "io.k8s.api.core.v1.PodTemplateSpec"
_CLAIM: Final = "io.k8s.api.core.v1.PersistentVolumeClaim"
_CLAIM_SPEC: Final = "io.k8s.api.core.v1.PersistentVolumeClaimSpec"
# The form of these tables is that of GANG_SPECS.
_POLICY: Final = fields("action event events exitCode timeout")
_JOB_SET: Final = fields(
    "suspend managedBy ttlSecondsAfterFinished",
    replicatedJobs=[
        fields("name groupName replicas", template=_JOB_TEMPLATE, dependsOn=[fields("name status")])
    ],
    network=fields("enableDNSHostnames subdomain publishNotReadyAddresses"),
    successPolicy=fields("operator targetReplicatedJobs"),
    failurePolicy=fields(
        "maxRestarts restartStrategy",
        rules=[
            fields(
                "name action onJobFailureReasons onJobFailureMessagePatterns targetReplicatedJobs"
            )
        ],
    ),
    startupPolicy=fields("startupPolicyOrder"),
    coordinator=fields("replicatedJob jobIndex podIndex"),
    volumeClaimPolicies=[
        {"templates": [_CLAIM], "retentionPolicy": fields("whenDeleted")},
    ],
)
_VOLCANO_JOB: Final = fields(
    "schedulerName minAvailable plugins runningEstimate queue maxRetry ttlSecondsAfterFinished "
    "priorityClassName minSuccess",
    volumes=[fields("mountPath volumeClaimName", volumeClaim=_CLAIM_SPEC)],
    tasks=[
        fields(
            "name replicas minAvailable topologyPolicy maxRetry",
            template=_POD_TEMPLATE,
            policies=[_POLICY],
            dependsOn=fields("name iteration"),
            partitionPolicy=fields(
                "totalPartitions partitionSize minPartitions", networkTopology=NETWORK_TOPOLOGY
            ),
        )
    ],
    policies=[_POLICY],
    networkTopology=NETWORK_TOPOLOGY,
)
_SPECS: Final[Mapping[tuple[str, str], Any]] = {
    ("jobset.x-k8s.io", "JobSet"): _JOB_SET,
    ("batch.volcano.sh", "Job"): _VOLCANO_JOB,
    **GANG_SPECS,
}


def batch_schema(kind: Kind) -> Schema | None:
    """Return the fields of the custom resources of `kind`; None if they are not listed here."""
    return _schema(kind.group, kind.kind)


@cache
def _schema(group: str, kind: str) -> Schema | None:
    spec = _SPECS.get((group, kind))
    if spec is None:
        return None
    return _made(fields("apiVersion kind status", metadata=_META, spec=spec))


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
