"""Anonymises the objects of a snapshot; Fairlead's answers about the objects stay the same.

The rules in this module keep the texts on which Fairlead's decisions depend. Every other text is
replaced by its pseudonym. Fields that no question needs are removed. Objects of kinds that no
command reads are removed, too, because the rules do not know which keys in these objects are names.
`PUBLISHED` describes the kept texts and the removed fields for users.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from fairlead.api.finalizer import FOREGROUND, ORPHAN
from fairlead.api.json import Json
from fairlead.api.quantity import QuantityError, parse_quantity
from fairlead.api.well_known_label import BETA_ZONE, ZONE
from fairlead.whatif.snapshot.anonymization.pseudonym import (
    KEPT,
    Pseudonyms,
    SegmentCollector,
    ordinal_of,
)
from fairlead.whatif.snapshot.anonymization.published_label import (
    DURATION,
    TIME,
    is_kept_value,
    is_published,
)
from fairlead.whatif.snapshot.live.live_resource import LIVE_RESOURCES

PUBLISHED: Final = f"""\
kept: kinds, API groups, phases, conditions, policies and other enumerations; numbers, quantities,
  times and resource names; versions of kubelets and container runtimes; label and annotation keys
  of kubernetes.io, k8s.io and known vendors; values of well-known labels (zone, region, instance
  type and its properties, architecture, operating system, capacity type), but not host names;
  numbers that Gt and Lt compare; names of the system's namespaces and priority classes, and in
  other names the parts
  {", ".join(KEPT)};
  scheduler names, drivers and provisioners; attributes, counters and CEL expressions of devices;
  fairlead.dev annotations, but not names in them
dropped: environments, commands, arguments, probes, lifecycle hooks, mounts, security contexts,
  addresses, messages, managed fields, applied configurations, events, Secrets, ConfigMaps,
  admission policies, webhooks, CustomResourceDefinitions, and kinds that no command reads
replaced: every other text (names, namespaces, uids, images, host names, labels, annotations)"""


def _words(text: str) -> list[str]:
    return text.split()


DROPPED_KINDS: Final = frozenset(
    (
        "Event",
        "Secret",
        "ConfigMap",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "CustomResourceDefinition",
    )
)
_OLD_GROUP: Final = "extensions"  # the former group of kinds that are in apps and policy today
_DROPPED_FIELDS: Final = frozenset(
    _words("""
    managedFields env envFrom command args livenessProbe readinessProbe startupProbe lifecycle
    volumeMounts volumeDevices terminationMessagePath securityContext imagePullSecrets workingDir
    message note addresses podIP podIPs hostIP hostIPs podCIDR podCIDRs machineID systemUUID bootID
    osImage kernelVersion imageID containerID sources hostAliases dnsConfig
    clusterIP clusterIPs externalIPs externalName loadBalancer loadBalancerIP selfLink lastState
    secretRef nodePublishSecretRef controllerPublishSecretRef nodeStageSecretRef volumeHandle
    volumeAttributes mountOptions parameters description options attachmentMetadata networkData tags
    userData
    """)
)
_LABEL_MAPS: Final = frozenset(("labels", "annotations", "matchLabels", "nodeSelector"))
# Fields whose values have the form of a label key; managedBy is the controller of a Job.
_LABEL_KEYS: Final = frozenset(
    _words("topologyKey topologyKeys matchLabelKeys mismatchLabelKeys managedBy")
)
# The annotation of a JobSet whose value is a label key (whatif/change/exclusive_topology.py).
_TOPOLOGY: Final = "alpha.jobset.sigs.k8s.io/exclusive-topology"
# Fields with types of conditions, which are enumerated or have the form of a label key.
_CONDITION_TYPES: Final = frozenset(
    _words("type conditionType bindingConditions bindingFailureConditions")
)
# Maps whose keys are names.
_NAMED_MAPS: Final = frozenset(("disruptedPods", "minTaskMember"))
# Maps from resource names to quantities.
_QUANTITY_MAPS: Final = frozenset(
    _words("""
    requests limits allocatable capacity hard used overhead podFixed allocatedResources minResources
    deserved capability guarantee reserved max min default defaultRequest maxLimitRequestRatio
    kubeReserved systemReserved
    """)
)
# Fields whose values are kept if they look like a member of an enumeration.
_ENUMERATIONS: Final = frozenset(
    _words("""
    selectPolicy controlledValues updateMode mode reclaimPolicy fsGroupPolicy cachingMode pullPolicy
    trafficDistribution disruptionMode allocationMode source reasons startupPolicyOrder
    onJobFailureReasons event events restartStrategy
    """)
)
# Values that do not look like members of an enumeration, because Volcano writes them in lower case.
# upstream: volcano: staging/src/volcano.sh/apis/pkg/apis/batch/v1alpha1/job.go: NumaPolicy,
# Iteration; scheduling/v1beta1/types.go: NetworkTopologyMode
_LOWER_CASE_VALUES: Final = {
    "topologyPolicy": _words("none best-effort restricted single-numa-node"),
    "iteration": _words("any all"),
    "mode": _words("hard soft"),
}
# Metrics of a HorizontalPodAutoscaler whose field `name` is the name of a resource.
_RESOURCE_METRICS: Final = frozenset(("resource", "containerResource"))
_ATTRIBUTE_TYPES: Final = frozenset(_words("bool int string version bools ints strings versions"))
# Fields whose values are kept unless they are objects.
_KEPT_FIELDS: Final = frozenset(
    _words("""
    apiVersion kind phase status effect operator restartPolicy dnsPolicy imagePullPolicy
    terminationMessagePolicy whenUnsatisfiable nodeAffinityPolicy nodeTaintsPolicy protocol qosClass
    preemptionPolicy accessModes volumeMode persistentVolumeReclaimPolicy volumeBindingMode
    provisioner driver attacher concurrencyPolicy schedule timeZone podManagementPolicy
    schedulerName controllerName reason scope scopes scopeName policyTypes sessionAffinity
    internalTrafficPolicy externalTrafficPolicy ipFamilies ipFamilyPolicy completionMode
    podReplacementPolicy unhealthyPodEvictionPolicy selectionPolicy action whenDeleted whenScaled
    resource resourceName resourceVersion expression kubeletVersion kubeProxyVersion
    containerRuntimeVersion
    operatingSystem architecture apiGroup state consolidationPolicy resizePolicy
    matchAttribute distinctAttribute extendedResourceName declaredFeatures completedIndexes
    failedIndexes succeededIndexes controlledResources consolidateAfter expireAfter duration zone
    """)
)
# Fields whose values are names, even if they look like a number or a time: a Node may be named
# 10.0.0.1, a namespace 2026. Fields that end with one of _NAME_ENDINGS are names, too.
_NAME_FIELDS: Final = frozenset(
    _words("""
    name generateName namespace namespaces uid container containers counterSet currentRevision
    device devicePath directory endpoints gateway group hostname hostnameOverride keyring monitors
    path pool portals preferredHolder protectionDomain queue registry repository request server
    serviceAccount storagePool subdomain system targetPortal targetWWNs tenant updateRevision user
    volume volumesInUse wwids
    """)
)
_NAME_ENDINGS: Final = ("Name", "Namespace", "ID", "Identity")
_KEPT_VALUES: Final = re.compile(rf"{TIME}|{DURATION}|[+-]?[0-9.]+(e[0-9]+)?[A-Za-z%]{{0,2}}")
_ALL: Final = "*"  # in fields of names, too: a policy of a VerticalPodAutoscaler for all containers
# Published prefixes after which users choose the rest of the key, such as the name of a role. The
# usual names in _KNOWN_ROLES are kept. AWS Load Balancer Controller names its readiness gates
# target-health... after a namespace and a Service.
_USERS_PREFIXES: Final = frozenset(
    _words("""
    node-role.kubernetes.io node-restriction.kubernetes.io
    container.apparmor.security.beta.kubernetes.io container.seccomp.security.alpha.kubernetes.io
    startup-taint.cluster-autoscaler.kubernetes.io ignore-taint.cluster-autoscaler.kubernetes.io
    status-taint.cluster-autoscaler.kubernetes.io delay-deletion.cluster-autoscaler.kubernetes.io
    readiness.k8s.io target-health.elbv2.k8s.aws target-health.alb.ingress.k8s.aws
    """)
)
# Published domains of which users choose the subdomain, too. The hierarchical namespace controller
# labels a namespace with the names of its ancestors, as in team.tree.hnc.x-k8s.io/depth.
_USERS_DOMAINS: Final = (".node-restriction.kubernetes.io", ".tree.hnc.x-k8s.io")
_KNOWN_ROLES: Final = frozenset(_words("control-plane master etcd worker"))
# Names of resources can contain the name of a StorageClass or of a DeviceClass. In quotas, the
# class is before one of these endings (upstream:
# pkg/quota/v1/evaluator/core/persistent_volume_claims.go: V1ResourceByStorageClass,
# resource_claims.go: V1ResourceByDeviceClass). In requests and quotas, the class can be after one
# of these prefixes (engine/state/devices/extended_resources.py).
_CLASS_ENDINGS: Final = (".storageclass.storage.k8s.io/", ".deviceclass.resource.k8s.io/")
_CLASS_PREFIXES: Final = (
    "deviceclass.resource.kubernetes.io/",
    "requests.deviceclass.resource.kubernetes.io/",
)
# A label or an annotation in a field of the downward API.
_FIELD_KEY: Final = re.compile(r"(metadata\.(?:labels|annotations)\[')(.*)('\])")
_SYSTEMS: Final = ("linux", "windows")
# Volume drivers repeat the zone of a node in a label of their own (whatif/snapshot/node_pool.py:
# zone_labels).
_ZONE: Final = "/zone"
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_ENUMERATED: Final = re.compile(r"([A-Z][A-Za-z]*)?")
_FINALIZERS: Final = ("kubernetes", FOREGROUND, ORPHAN)
_NUMERIC_OPERATORS: Final = ("Gt", "Lt")

_READ_KINDS: Final = frozenset((one.kind.group, one.kind.kind) for one in LIVE_RESOURCES)
_READ_NAMES: Final = frozenset(kind for _, kind in _READ_KINDS) - DROPPED_KINDS

Replace = Callable[[str], str]


class AnonymousObjects(Struct, frozen=True):
    """The anonymised objects, their pseudonyms, and the number of dropped objects by kind."""

    objects: list[Json]
    pseudonyms: Pseudonyms
    dropped: Counter[str]


def anonymised(objects: Iterable[Json]) -> AnonymousObjects:
    """Return the anonymised objects of one snapshot; references between them stay intact."""
    kept: list[Json] = []
    dropped: Counter[str] = Counter()
    for one in objects:
        if _is_read(one):
            kept.append(one)
        else:
            dropped[str(one.get("kind"))] += 1
    compared = frozenset(key for one in kept for key in _compared_keys(one))
    zones, ordinals = _zones(kept), _ordinals(kept)
    collector = SegmentCollector()
    collecting = _Rewriter(_with_ordinals(collector.replace, ordinals), compared, zones)
    for one in kept:
        collecting.object(one)
    pseudonyms = Pseudonyms(collector.segments)
    rewriter = _Rewriter(_with_ordinals(pseudonyms.replace, ordinals), compared, zones)
    return AnonymousObjects([rewriter.object(one) for one in kept], pseudonyms, dropped)


def _is_read(obj: Json) -> bool:
    """Return whether any command reads objects of the kind of `obj`."""
    kind, group = obj.get("kind"), str(obj.get("apiVersion")).rpartition("/")[0]
    if group == _OLD_GROUP:
        return kind in _READ_NAMES
    return kind not in DROPPED_KINDS and (group, kind) in _READ_KINDS


def _compared_keys(value: Any) -> Iterator[str]:
    """Yield the label keys of the Gt and Lt requirements in `value`, which compare numbers."""
    if isinstance(value, list):
        for one in value:
            yield from _compared_keys(one)
    elif isinstance(value, dict):
        if value.get("operator") in _NUMERIC_OPERATORS and isinstance(value.get("key"), str):
            yield value["key"]
        for one in value.values():
            yield from _compared_keys(one)


def _zones(objects: Iterable[Json]) -> frozenset[str]:
    """Return the zones of the nodes in `objects`."""
    labels = ((one.get("metadata") or {}).get("labels") or {} for one in objects)
    return frozenset(one[key] for one in labels for key in (ZONE, BETA_ZONE) if one.get(key))


class _Numbered(Struct, frozen=True):
    """The parts of a name `stem-ordinal` or `stem-ordinal-ending` of a StatefulSet's object."""

    stem: str
    ordinal: str
    ending: str = ""


def _ordinals(objects: Iterable[Json]) -> dict[str, _Numbered]:
    """Return the parts of the names of pods and claims of StatefulSets, by name.

    The parts are the text before the ordinal, the ordinal, and the text after the ordinal. Claims
    without a pod are included, because a StatefulSet uses such a claim when it creates the pod
    again.
    """
    found: dict[str, _Numbered] = {}
    claims: set[str] = set()
    stems: set[str] = set()
    for one in objects:
        meta = one.get("metadata") or {}
        if one.get("kind") == "Pod":
            for owner in meta.get("ownerReferences") or ():
                if owner.get("kind") == "StatefulSet":
                    found |= _names_of(one, owner.get("name", ""))
        elif one.get("kind") == "PersistentVolumeClaim":
            claims.add(meta.get("name", ""))
        elif one.get("kind") == "StatefulSet":
            templates = (one.get("spec") or {}).get("volumeClaimTemplates") or ()
            names = ((template.get("metadata") or {}).get("name") for template in templates)
            stems.update(f"{name}-{meta['name']}" for name in names)
    for claim in claims - found.keys():
        stem, _, ordinal = claim.rpartition("-")
        if stem in stems and ordinal_of(claim, stem):
            found[claim] = _Numbered(stem, ordinal)
    return found


def _names_of(pod: Json, owner: str) -> dict[str, _Numbered]:
    """Return the parts of the names of `pod` and its claims, by name.

    `owner` is the name of the StatefulSet of `pod`. Return {} if the name of `pod` does not end
    with an ordinal.
    """
    name = pod["metadata"]["name"]
    ordinal = ordinal_of(name, owner)
    if not ordinal:
        return {}
    found = {name: _Numbered(owner, ordinal)}
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName", "")
        if claim.endswith(f"-{name}"):
            found[claim] = _Numbered(claim.removesuffix(f"-{ordinal}"), ordinal)
        if volume.get("ephemeral"):
            ending = volume.get("name", "")
            found[f"{name}-{ending}"] = _Numbered(owner, ordinal, ending)
    return found


def _with_ordinals(replace: Replace, ordinals: Mapping[str, _Numbered]) -> Replace:
    """Return a function like `replace` that keeps the ordinal of each name in `ordinals`."""

    def replaced(name: str) -> str:
        parts = ordinals.get(name)
        if parts is None:
            return replace(name)
        ending = f"-{replace(parts.ending)}" if parts.ending else ""
        return f"{replace(parts.stem)}-{parts.ordinal}{ending}"

    return replaced


class _Rewriter(Struct, frozen=True):
    """Anonymises objects; the function `replace` returns the pseudonym of a text.

    `compared` are the label keys that Gt and Lt compare. `zones` are the zones of the nodes.
    """

    replace: Replace
    compared: frozenset[str] = frozenset()
    zones: frozenset[str] = frozenset()

    def object(self, obj: Json) -> Json:
        """Return the anonymised `obj`."""
        rewritten: Json = self._value("", obj)
        if obj.get("kind") == "CSIDriver":  # its name is the driver, which other objects refer to
            rewritten["metadata"]["name"] = obj["metadata"]["name"]
        return rewritten

    def _value(self, field: str, value: Any) -> Any:
        if isinstance(value, dict):
            return self._members(field, value)
        if isinstance(value, list):
            if field == "finalizers":
                return [self._finalizer(one) for one in value]
            return [self._value(field, one) for one in value]
        if isinstance(value, str):
            return self._text(field, value)
        return value

    def _members(self, field: str, value: Json) -> Json:
        is_selector = field == "selector" and not value.keys() & {"matchLabels", "matchExpressions"}
        if (field in _LABEL_MAPS or is_selector) and all(
            isinstance(one, str) for one in value.values()
        ):
            return self._labels(value)
        if field in _QUANTITY_MAPS and all(_is_quantity(one) for one in value.values()):
            return {self._resource(name): one for name, one in value.items()}
        if isinstance(value.get("key"), str) and (
            value.keys() & {"operator", "effect", "values"} or field == "topology"
        ):
            return self._requirement(value)
        if field in _NAMED_MAPS:
            return {self.replace(name): self._value("", one) for name, one in value.items()}
        keeps_name = (
            field in _RESOURCE_METRICS and bool(value.keys() & {"target", "current"})
        ) or (field == "os" and value.get("name") in _SYSTEMS)
        keeps_name |= field == "drivers" and "nodeID" in value  # the drivers of a CSINode
        # `data` is removed from a device, because it contains texts of the driver. The `data` of a
        # ControllerRevision is a template, which is rewritten like other objects.
        is_device = value.keys() >= {"driver", "device"}
        keeps_group = isinstance(value.get("group"), str) and value.keys() >= {"kind", "name"}
        return {
            name: one
            if _is_kept(name, one)
            or (keeps_name and name == "name")
            or (keeps_group and name == "group")
            else self._value(name, one)
            for name, one in value.items()
            if name not in _DROPPED_FIELDS and not (is_device and name == "data")
        }

    def _resource(self, name: str) -> str:
        """Return the resource `name`; a pseudonym replaces a StorageClass or DeviceClass in it."""
        for ending in _CLASS_ENDINGS:
            of_class, found, resource = name.partition(ending)
            if found:
                return f"{self.replace(of_class)}{ending}{resource}"
        for prefix in _CLASS_PREFIXES:
            if name.startswith(prefix):
                return prefix + self.replace(name.removeprefix(prefix))
        return name

    def _labels(self, labels: Mapping[str, str]) -> Json:
        return {
            self._key(key): self._label_value(key, value)
            for key, value in labels.items()
            if key != _APPLIED
        }

    def _requirement(self, value: Json) -> Json:
        """Return the taint, toleration or requirement `value` with rewritten keys and values."""
        key, rewritten = value["key"], dict(value)
        is_field = key.startswith("metadata.")
        rewritten["key"] = key if is_field else self._key(key)
        if "value" in value:
            rewritten["value"] = self._label_value(key, value["value"] or "")
        if "values" in value:
            rewritten["values"] = [self._label_value(key, one) for one in value["values"] or ()]
        return rewritten

    def _key(self, key: str) -> str:
        prefix, _, name = key.partition("/")
        if prefix in _USERS_PREFIXES:
            return key if name in _KNOWN_ROLES else f"{prefix}/{self.replace(name)}"
        for domain in _USERS_DOMAINS:
            if prefix.endswith(domain):
                return f"{self.replace(prefix.removesuffix(domain))}{domain}/{self.replace(name)}"
        if is_published(key):
            return key
        if key.endswith(_ZONE):
            return self.replace(key.removesuffix(_ZONE)) + _ZONE
        return self.replace(key)

    def _label_value(self, key: str, value: Any) -> Any:
        if not isinstance(value, str):  # the value is malformed, in a kind without a typed view
            return self._value("", value)
        if key == _TOPOLOGY:
            return self._key(value)
        is_number = key in self.compared and value.lstrip("-").isdecimal()
        is_zone = key.endswith(_ZONE) and value in self.zones
        if is_number or is_zone or is_kept_value(key, value):
            return value
        if is_published(key):  # the value can be a list of names, such as volumes of a pod
            return ",".join(map(self.replace, value.split(",")))
        return self.replace(value)

    def _finalizer(self, name: Any) -> Any:
        if not isinstance(name, str):
            return self._value("", name)
        return name if name in _FINALIZERS else self._key(name)

    def _text(self, field: str, text: str) -> str:
        if field in _LABEL_KEYS:
            return self._key(text)
        if field == "fieldPath":
            found = _FIELD_KEY.fullmatch(text)
            return text if found is None else found[1] + self._key(found[2]) + found[3]
        if field in _CONDITION_TYPES:
            return text if _ENUMERATED.fullmatch(text) else self._key(text)
        if _is_enumerated(field, text):
            return text
        if field in ("image", "names", "reference"):
            return self._image(text)
        if text == _ALL:
            return text
        is_name = field in _NAME_FIELDS or field.endswith(_NAME_ENDINGS)
        if is_name or not _KEPT_VALUES.fullmatch(text):
            ending = "-" if field == "generateName" and text.endswith("-") else ""
            return self.replace(text.removesuffix(ending)) + ending
        return text

    def _image(self, image: str) -> str:
        """Return a pseudonym of `image`; every pseudonym has the tag `v`.

        An image without a tag has the same pseudonym as the image with the tag `latest`. So the
        images of pods still match the images on nodes.
        """
        # upstream: pkg/scheduler/framework/plugins/imagelocality: normalizedImageName
        if not image:
            return image
        normalized = image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
        return f"{self.replace(normalized)}:v"


def _is_enumerated(field: str, text: str) -> bool:
    """Return whether `text` is, or looks like, a member of the enumeration in `field`."""
    if field in _ENUMERATIONS and _ENUMERATED.fullmatch(text):
        return True
    return text in _LOWER_CASE_VALUES.get(field, ())


def _is_quantity(value: Any) -> bool:
    if isinstance(value, str):
        try:
            parse_quantity(value)
        except QuantityError:
            return False
        return True
    return isinstance(value, int | float)


def _is_kept(field: str, value: Any) -> bool:
    if _is_about_devices(field, value):
        return True
    parts = value if isinstance(value, list) else [value]
    return field in _KEPT_FIELDS and not any(isinstance(one, dict | list) for one in parts)


def _is_about_devices(field: str, value: Any) -> bool:
    """Return whether `value` has the form of a device's attributes or of device selectors."""
    match field, value:
        case "attributes", dict():
            found = list(value.values())
            return all(isinstance(one, dict) and one.keys() <= _ATTRIBUTE_TYPES for one in found)
        case "selectors", list():
            return all(isinstance(one, dict) and one.keys() == {"cel"} for one in value)
        case "cel", dict():
            return value.keys() == {"expression"}
        case _:
            return False
