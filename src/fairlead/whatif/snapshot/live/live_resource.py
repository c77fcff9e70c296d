"""The resources that Fairlead reads from a cluster, and the consequence if one is unreadable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from msgspec import Struct, structs

from fairlead.api.json import Json
from fairlead.api.text.name_list import joined
from fairlead.apiserver.kind import CUSTOM_RESOURCE_DEFINITION, KINDS, Kind, kind_of
from fairlead.whatif.snapshot.installed_autoscaler import STATUS, STATUS_NAMESPACE

LEASES_NAMESPACE: Final = "kube-node-lease"

# One line per resource, with the consequence of its absence. A resource without a consequence is
# required. Resources with the same consequence share a note, so that few notes hide no others.
_RESOURCES: Final = """
nodes
pods
namespaces: namespace selectors match nothing
poddisruptionbudgets.policy: drains and preemptions look easier than they are
priorityclasses.scheduling.k8s.io: new pods get no priority by class
deployments.apps: evicted pods of Deployments might be replaced differently
replicasets.apps: their evicted pods are not replaced
statefulsets.apps: their evicted pods are not replaced
daemonsets.apps: their evicted pods are not replaced
replicationcontrollers: their evicted pods are not replaced
controllerrevisions.apps: rollouts of StatefulSets and DaemonSets start anew
jobs.batch: their evicted pods are not replaced
cronjobs.batch: no CronJob starts a Job
jobs.batch.volcano.sh: Jobs of Volcano are unknown
jobsets.jobset.x-k8s.io: JobSets are unknown
services: default topology spread does not see which pods belong together
persistentvolumeclaims: pods with volumes cannot be placed as on the cluster
persistentvolumes: pods with volumes cannot be placed as on the cluster
storageclasses.storage.k8s.io: pods with volumes cannot be placed as on the cluster
csinodes.storage.k8s.io: limits and storage capacity of volume drivers are ignored
csidrivers.storage.k8s.io: limits and storage capacity of volume drivers are ignored
csistoragecapacities.storage.k8s.io: limits and storage capacity of volume drivers are ignored
volumeattachments.storage.k8s.io: limits and storage capacity of volume drivers are ignored
serviceaccounts: pods of missing service accounts are not refused
limitranges: new workloads get no default requests
resourcequotas: quotas refuse nothing
runtimeclasses.node.k8s.io: the overhead of runtime classes is ignored
resourceclaims.resource.k8s.io: pods with devices cannot be placed as on the cluster
resourceclaimtemplates.resource.k8s.io: pods with devices cannot be placed as on the cluster
resourceslices.resource.k8s.io: pods with devices cannot be placed as on the cluster
deviceclasses.resource.k8s.io: pods with devices cannot be placed as on the cluster
devicetaintrules.resource.k8s.io: taints of DeviceTaintRules are ignored
leases.coordination.k8s.io: an outage under way seems to begin earlier than it did
horizontalpodautoscalers.autoscaling: workloads keep their present number of replicas
validatingadmissionpolicies.admissionregistration.k8s.io: policies and webhooks are unknown
validatingadmissionpolicybindings.admissionregistration.k8s.io: policies and webhooks are unknown
mutatingadmissionpolicies.admissionregistration.k8s.io: policies and webhooks are unknown
mutatingadmissionpolicybindings.admissionregistration.k8s.io: policies and webhooks are unknown
validatingwebhookconfigurations.admissionregistration.k8s.io: policies and webhooks are unknown
mutatingwebhookconfigurations.admissionregistration.k8s.io: policies and webhooks are unknown
podgroups.scheduling.volcano.sh: gangs of Volcano are scheduled pod by pod
queues.scheduling.volcano.sh: the queues of Volcano are unknown
podgroups.scheduling.incubator.k8s.io: gangs of kube-batch are scheduled pod by pod
queues.scheduling.incubator.k8s.io: the queues of kube-batch are unknown
podgroups.scheduling.sigs.dev: gangs of kube-batch are scheduled pod by pod
queues.scheduling.sigs.dev: the queues of kube-batch are unknown
podgroups.scheduling.x-k8s.io: gangs are scheduled pod by pod
podgroups.scheduling.k8s.io: gangs are scheduled pod by pod
nodepools.karpenter.sh: Karpenter's nodes are not added or removed
nodeclaims.karpenter.sh: Karpenter's nodes are not added or removed
nodeoverlays.karpenter.sh: Karpenter's prices and capacities are not adjusted
ec2nodeclasses.karpenter.k8s.aws: Karpenter uses only zones that already have nodes
machinedeployments.cluster.x-k8s.io: limits of the node groups of Cluster API are unknown
machinesets.cluster.x-k8s.io: limits of the node groups of Cluster API are unknown
verticalpodautoscalers.autoscaling.k8s.io: recommended requests are unknown
workloads.kueue.x-k8s.io: why Kueue holds Jobs back is unknown
localqueues.kueue.x-k8s.io: the queues of Kueue cannot be explained
clusterqueues.kueue.x-k8s.io: the queues of Kueue cannot be explained
configmaps: the status of Cluster Autoscaler, with the limits of node groups, is unknown
"""
# The resources of which only some objects are read: (their namespace, their name or "").
_PARTS: Final = {
    "leases.coordination.k8s.io": (LEASES_NAMESPACE, ""),
    "configmaps": (STATUS_NAMESPACE, STATUS),
}


class LiveResource(Struct, frozen=True):
    """A resource to read from a cluster.

    `consequence` says what answers lack if the resource cannot be read. `consequence` is "" for a
    required resource: if a required resource cannot be read, there are no answers. If `namespace`
    is set, only the objects in this namespace are read. If `name` is set, only the object with this
    name is read.
    """

    kind: Kind
    consequence: str
    namespace: str = ""
    name: str = ""

    def includes(self, value: Json) -> bool:
        """Return whether `value`, an object of this kind, is among the objects to read."""
        metadata = value["metadata"]
        is_in_namespace = self.namespace in ("", metadata.get("namespace"))
        return is_in_namespace and self.name in ("", metadata["name"])

    def in_version(self, version: str) -> LiveResource:
        """Return this resource in another `version` of its API group."""
        return structs.replace(self, kind=replace(self.kind, version=version))

    @property
    def path(self) -> str:
        """The API path of the request that lists the objects; `query` has its parameters."""
        kind = self.kind
        group, _, version = kind.api_version.rpartition("/")
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        place = f"/namespaces/{self.namespace}" if self.namespace else ""
        return f"{root}{place}/{kind.plural}"

    @property
    def query(self) -> dict[str, str]:
        """The parameters of the request that lists the objects.

        If `name` is set, a field selector selects the object by its name. An RBAC rule with
        resourceNames allows `list` only with such a field selector.

        upstream: apiserver pkg/endpoints/request/requestinfo.go: NewRequestInfo
        """
        return {"fieldSelector": f"metadata.name={self.name}"} if self.name else {}


# Kinds that the API server serves only if their CustomResourceDefinition exists.
_CUSTOM: Final = tuple(
    replace(kind_of({"apiVersion": api_version, "kind": kind}), is_custom=True)
    for api_version, *kinds in (
        ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler"),
        ("batch.volcano.sh/v1alpha1", "Job"),
        ("cluster.x-k8s.io/v1beta1", "MachineDeployment", "MachineSet"),
        ("jobset.x-k8s.io/v1alpha2", "JobSet"),
        ("karpenter.k8s.aws/v1", "EC2NodeClass"),
        ("karpenter.sh/v1", "NodePool", "NodeClaim"),
        ("karpenter.sh/v1alpha1", "NodeOverlay"),
        # Older versions of Kueue do not serve v1beta2.
        ("kueue.x-k8s.io/v1beta1", "Workload", "LocalQueue", "ClusterQueue"),
    )
    for kind in kinds
)


def _resources(text: str) -> Iterator[LiveResource]:
    by_name = {kind.resource: kind for kind in (*reversed(KINDS), *_CUSTOM)}
    rows = (line.partition(": ") for line in text.strip().splitlines())
    for name, _, consequence in rows:
        yield LiveResource(by_name[name], consequence, *_PARTS.get(name, ()))


def _definitions(resources: Iterable[LiveResource]) -> Iterator[LiveResource]:
    """Yield the definition of each custom resource in `resources`.

    A cluster can have thousands of other definitions, with large schemas. No answer reads objects
    of their kinds.
    """
    for one in resources:
        if one.kind.is_custom:  # the name of a definition is that of its resource
            kind = CUSTOM_RESOURCE_DEFINITION
            yield LiveResource(kind, "custom resources are not checked", name=one.kind.resource)


_OBJECTS: Final = tuple(_resources(_RESOURCES))
LIVE_RESOURCES: Final = (*_OBJECTS, *_definitions(_OBJECTS))
_ROLE: Final = (
    "if you lack the permission to read these, `fairlead snapshot --rbac` prints the role that is "
    "needed"
)


def unreadable_lines(resources: Iterable[str]) -> list[str]:
    """Return the effects of the unreadable `resources` on an answer, one line per effect."""
    consequences = {each.kind.resource: each for each in LIVE_RESOURCES}
    by_meaning: dict[str, list[str]] = {}
    for name in resources:
        known = consequences.get(name)
        if known is not None:
            by_meaning.setdefault(known.consequence, []).append(known.kind.plural)
    # Several API groups have a resource of the same name, such as podgroups.
    return [
        f"no {joined(dict.fromkeys(plurals))} could be read: {meaning}"
        for meaning, plurals in by_meaning.items()
    ]


def unreadable_notes(resources: Iterable[str]) -> list[str]:
    """Return a line for each effect of the unreadable `resources`; [] if there is no effect.

    A further line says how to get the missing permissions.
    """
    lines = unreadable_lines(resources)
    return [*lines, _ROLE] if lines else []


def _rule(group: str, plurals: Sequence[str], names: Sequence[str] = ()) -> str:
    """Return the lines of an RBAC rule that allows listing the objects with `names`.

    If `names` is empty, the rule allows listing all objects.
    """
    lines = [f'  - apiGroups: ["{group}"]', f"    resources: [{', '.join(plurals)}]"]
    if names:
        lines += ["    resourceNames:", *(f"      - {name}" for name in names)]
    return "\n".join([*lines, "    verbs: [list]"])


def rbac_manifest(name: str = "fairlead-reader") -> str:
    """Return a ClusterRole that may read the objects of a snapshot, and a Role for node Leases."""
    groups: dict[str, list[str]] = {}
    named: dict[tuple[str, str], list[str]] = {}
    for resource in LIVE_RESOURCES:
        group, plural = resource.kind.group, resource.kind.plural
        if resource.name:
            named.setdefault((group, plural), []).append(resource.name)
        elif not resource.namespace:
            groups.setdefault(group, []).append(plural)
    rules = "\n".join(
        chain(
            (_rule(group, plurals) for group, plurals in groups.items()),
            (_rule(group, [plural], names) for (group, plural), names in named.items()),
        )
    )
    return f"""\
# What `fairlead snapshot`, `whatif` and `explain` read of a cluster. Bind both roles to the user,
# group or service account that runs them:
#   kubectl create clusterrolebinding {name} --clusterrole {name} --user NAME
#   kubectl create rolebinding {name} -n {LEASES_NAMESPACE} --role {name} --user NAME
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {name}
rules:
{rules}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {name}
  namespace: {LEASES_NAMESPACE}
rules:
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [list]
"""
