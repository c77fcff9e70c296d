"""Which kinds of objects there are, and what the API server must know of each.

The table is the discovery document of a 1.36 API server without its subresources and reviews.
Any other kind (a custom resource, a kind of another version) is carried along under a guess.

upstream: pkg/registry/*/rest/storage_*.go, and each kind's strategy.go for the traits
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

# apiVersion, kind, plural, short names, traits: n lives in namespaces, g counts the changes of
# its spec in metadata.generation, s has a status that is written on its own. Where several
# groups share a name, the first row has it, as kubectl has it.
_TABLE: Final = """
v1 Pod pods po ngs
v1 Node nodes no s
v1 Namespace namespaces ns s
v1 Service services svc ns
v1 ReplicationController replicationcontrollers rc ngs
v1 ConfigMap configmaps cm n
v1 Secret secrets - n
v1 ServiceAccount serviceaccounts sa n
v1 Endpoints endpoints ep n
v1 Event events ev n
v1 PersistentVolume persistentvolumes pv s
v1 PersistentVolumeClaim persistentvolumeclaims pvc ns
v1 LimitRange limitranges limits n
v1 ResourceQuota resourcequotas quota ns
v1 PodTemplate podtemplates - ng
v1 ComponentStatus componentstatuses cs -
apps/v1 Deployment deployments deploy ngs
apps/v1 ReplicaSet replicasets rs ngs
apps/v1 StatefulSet statefulsets sts ngs
apps/v1 DaemonSet daemonsets ds ngs
apps/v1 ControllerRevision controllerrevisions - n
batch/v1 Job jobs - ngs
batch/v1 CronJob cronjobs cj ngs
policy/v1 PodDisruptionBudget poddisruptionbudgets pdb ngs
scheduling.k8s.io/v1 PriorityClass priorityclasses pc g
autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers hpa ns
autoscaling/v1 HorizontalPodAutoscaler horizontalpodautoscalers hpa ns
coordination.k8s.io/v1 Lease leases - n
discovery.k8s.io/v1 EndpointSlice endpointslices - ng
events.k8s.io/v1 Event events ev n
storage.k8s.io/v1 StorageClass storageclasses sc -
storage.k8s.io/v1 VolumeAttachment volumeattachments - s
storage.k8s.io/v1 CSINode csinodes - -
storage.k8s.io/v1 CSIDriver csidrivers - -
storage.k8s.io/v1 CSIStorageCapacity csistoragecapacities - n
storage.k8s.io/v1 VolumeAttributesClass volumeattributesclasses vac -
networking.k8s.io/v1 Ingress ingresses ing ngs
networking.k8s.io/v1 IngressClass ingressclasses - g
networking.k8s.io/v1 NetworkPolicy networkpolicies netpol ng
networking.k8s.io/v1 IPAddress ipaddresses ip -
networking.k8s.io/v1 ServiceCIDR servicecidrs - s
rbac.authorization.k8s.io/v1 Role roles - n
rbac.authorization.k8s.io/v1 RoleBinding rolebindings - n
rbac.authorization.k8s.io/v1 ClusterRole clusterroles - -
rbac.authorization.k8s.io/v1 ClusterRoleBinding clusterrolebindings - -
resource.k8s.io/v1 DeviceClass deviceclasses - g
resource.k8s.io/v1 ResourceClaim resourceclaims - ns
resource.k8s.io/v1 ResourceClaimTemplate resourceclaimtemplates - n
resource.k8s.io/v1 ResourceSlice resourceslices - g
node.k8s.io/v1 RuntimeClass runtimeclasses - -
certificates.k8s.io/v1 CertificateSigningRequest certificatesigningrequests csr s
apiextensions.k8s.io/v1 CustomResourceDefinition customresourcedefinitions crd,crds gs
apiregistration.k8s.io/v1 APIService apiservices - s
admissionregistration.k8s.io/v1 MutatingWebhookConfiguration mutatingwebhookconfigurations - g
admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration validatingwebhookconfigurations - g
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy validatingadmissionpolicies - gs
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings - g
admissionregistration.k8s.io/v1 MutatingAdmissionPolicy mutatingadmissionpolicies - g
admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding mutatingadmissionpolicybindings - g
flowcontrol.apiserver.k8s.io/v1 FlowSchema flowschemas - gs
flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration prioritylevelconfigurations - gs
"""  # noqa: E501 - a row is a row


@dataclass(frozen=True)
class Kind:
    """A kind of objects; `group` is "" for the core group."""

    group: str
    version: str
    kind: str
    plural: str
    short_names: tuple[str, ...] = ()
    namespaced: bool = True
    has_generation: bool = False
    has_status: bool = False

    @cached_property
    def api_version(self) -> str:
        """`group/version`, or `version` in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def resource(self) -> str:
        """`pods`, `deployments.apps`: the name in most refusals, and the key of storage."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
    def qualified(self) -> str:
        """`Pod`, `Deployment.apps`: the name in refusals of invalid objects."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


def _row(line: str) -> Kind:
    api_version, kind, plural, short_names, traits = line.split()
    group, _, version = api_version.rpartition("/")
    return Kind(
        group,
        version,
        kind,
        plural,
        () if short_names == "-" else tuple(short_names.split(",")),
        namespaced="n" in traits,
        has_generation="g" in traits,
        has_status="s" in traits,
    )


KINDS: Final = tuple(map(_row, _TABLE.strip().splitlines()))
_BY_TYPE: Final = {(kind.api_version, kind.kind): kind for kind in KINDS}


def _by_name() -> dict[str, Kind]:
    """Every name of every kind, in lower case, alone and with its group."""
    names: dict[str, Kind] = {}
    for kind in KINDS:
        for name in (kind.plural, kind.kind.lower(), *kind.short_names):
            names.setdefault(name, kind)
            names.setdefault(f"{name}.{kind.group}", kind)
    return names


_BY_NAME: Final = _by_name()

POD: Final = _BY_NAME["pod"]
NODE: Final = _BY_NAME["node"]
NAMESPACE: Final = _BY_NAME["namespace"]
SERVICE: Final = _BY_NAME["service"]
REPLICATION_CONTROLLER: Final = _BY_NAME["replicationcontroller"]
DEPLOYMENT: Final = _BY_NAME["deployment"]
REPLICA_SET: Final = _BY_NAME["replicaset"]
STATEFUL_SET: Final = _BY_NAME["statefulset"]
DAEMON_SET: Final = _BY_NAME["daemonset"]
JOB: Final = _BY_NAME["job"]
CRON_JOB: Final = _BY_NAME["cronjob"]
POD_DISRUPTION_BUDGET: Final = _BY_NAME["poddisruptionbudget"]
PRIORITY_CLASS: Final = _BY_NAME["priorityclass"]


def find_kind(name: str) -> Kind | None:
    """The kind called `name`: its kind, plural or short name in any case, with `.group` or not."""
    return _BY_NAME.get(name.lower())


def kind_of(obj: Mapping[str, Any]) -> Kind:
    """The kind of a JSON object; one that is not in the table is guessed from the object."""
    api_version, kind = obj.get("apiVersion", ""), obj.get("kind", "")
    known = _BY_TYPE.get((api_version, kind))
    if known is not None:
        return known
    group, _, version = api_version.rpartition("/")
    namespaced = bool(obj.get("metadata", {}).get("namespace"))
    return Kind(group, version, kind, _plural(kind), namespaced=namespaced, has_generation=True)


def _plural(kind: str) -> str:
    """The usual plural; the name a custom resource definition gives itself may differ."""
    # upstream: apimachinery/pkg/api/meta/restmapper.go:UnsafeGuessKindToResource
    singular = kind.lower()
    if singular.endswith("s"):
        return f"{singular}es"
    return f"{singular[:-1]}ies" if singular.endswith("y") else f"{singular}s"
