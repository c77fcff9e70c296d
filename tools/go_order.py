"""In which order Kubernetes' Go types declare their fields: the order in which they are printed.

The messages that a Kubernetes program carries (see protobuf_table.py) list their fields in the
order of declaration. What stands here besides is what a program of 1.33 does not know: types that
have no message or were born later (`DECLARED`), and fields that were added since (`ADDED`, with
the field they come after).

upstream: staging/src/k8s.io/api/<group>/<version>/types.go
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from protobuf_table import Message, message_named

Messages = Mapping[str, Message]

TYPE_META = ("kind", "apiVersion")


def _rows(table: str) -> dict[str, list[str]]:
    rows = {}
    for line in table.strip().splitlines():
        name, *fields = line.split()
        rows[name] = fields
    return rows


DECLARED = _rows("""
core.v1.ContainerExtendedResourceRequest containerName resourceName requestName
core.v1.ContainerRestartRule action exitCodes
core.v1.ContainerRestartRuleOnExitCodes operator values
core.v1.FileKeySelector volumeName path key optional
core.v1.PodCertificateProjection signerName keyType maxExpirationSeconds credentialBundlePath \
keyPath certificateChainPath userAnnotations
core.v1.PodExtendedResourceClaimStatus requestMappings resourceClaimName
core.v1.EphemeralContainer name image command args workingDir ports envFrom env resources \
resizePolicy restartPolicy restartPolicyRules volumeMounts volumeDevices livenessProbe \
readinessProbe startupProbe lifecycle terminationMessagePath terminationMessagePolicy \
imagePullPolicy securityContext stdin stdinOnce tty targetContainerName
core.v1.Probe exec httpGet tcpSocket grpc initialDelaySeconds timeoutSeconds periodSeconds \
successThreshold failureThreshold terminationGracePeriodSeconds
resource.v1.CapacityRequestPolicy default validValues validRange
resource.v1.CapacityRequestPolicyRange min max step
resource.v1.CapacityRequirements requests
resource.v1.DeviceAttribute int bool string version ints bools strings versions
admissionregistration.v1.NamedRuleWithOperations resourceNames operations apiGroups apiVersions \
resources scope
admissionregistration.v1.RuleWithOperations operations apiGroups apiVersions resources scope
apiextensions.v1.CustomResourceColumnDefinition name type format description priority jsonPath
apiextensions.v1.CustomResourceConversion strategy webhook
apiextensions.v1.CustomResourceDefinition metadata spec status
apiextensions.v1.CustomResourceDefinitionCondition type status lastTransitionTime reason message \
observedGeneration
apiextensions.v1.CustomResourceDefinitionList metadata items
apiextensions.v1.CustomResourceDefinitionNames plural singular shortNames kind listKind categories
apiextensions.v1.CustomResourceDefinitionSpec group names scope versions conversion \
preserveUnknownFields
apiextensions.v1.CustomResourceDefinitionStatus conditions acceptedNames storedVersions \
observedGeneration
apiextensions.v1.CustomResourceDefinitionVersion name served storage deprecated \
deprecationWarning schema subresources additionalPrinterColumns selectableFields
apiextensions.v1.CustomResourceSubresourceScale specReplicasPath statusReplicasPath \
labelSelectorPath
apiextensions.v1.CustomResourceSubresources status scale
apiextensions.v1.ExternalDocumentation description url
apiextensions.v1.JSONSchemaProps id $schema $ref description type format title default maximum \
exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern maxItems minItems \
uniqueItems multipleOf enum maxProperties minProperties required items allOf oneOf anyOf not \
properties additionalProperties patternProperties dependencies additionalItems definitions \
externalDocs example nullable x-kubernetes-preserve-unknown-fields \
x-kubernetes-embedded-resource x-kubernetes-int-or-string x-kubernetes-list-map-keys \
x-kubernetes-list-type x-kubernetes-map-type x-kubernetes-validations
apiextensions.v1.ServiceReference namespace name path port
apiextensions.v1.ValidationRule rule message messageExpression reason fieldPath optionalOldSelf
apiextensions.v1.WebhookClientConfig url service caBundle
apiextensions.v1.WebhookConversion clientConfig conversionReviewVersions
apiregistration.v1.APIService metadata spec status
apiregistration.v1.APIServiceCondition type status lastTransitionTime reason message
apiregistration.v1.APIServiceList metadata items
apiregistration.v1.APIServiceSpec service group version insecureSkipTLSVerify caBundle \
groupPriorityMinimum versionPriority
apiregistration.v1.ServiceReference namespace name port
""")
ADDED = {
    "core.v1.Container.restartPolicyRules": "restartPolicy",
    "storage.v1.CSIDriverSpec.serviceAccountTokenInSecrets": "seLinuxMount",
    "storage.v1.CSIDriverSpec.preventPodSchedulingIfMissing": "serviceAccountTokenInSecrets",
    "core.v1.PodStatus.allocatedResources": "extendedResourceClaimStatus",
    "core.v1.PodStatus.resources": "allocatedResources",
    "core.v1.PodStatus.nodeAllocatableResourceClaimStatuses": "resources",
}


def in_order(definition: str, fields: Iterable[str], messages: Messages) -> list[str]:
    """`fields` of a definition as its Go type declares them; those that nobody knows come last."""
    known = {field.lower(): field for field in sorted(fields)}
    short = ".".join(definition.split(".")[-3:])
    meta = TYPE_META if {"metadata", *TYPE_META} <= set(fields) else ()
    declared = DECLARED.get(short) or _members(definition, known, messages)
    found = [known[name.lower()] for name in (*meta, *declared) if name.lower() in known]
    order = list(dict.fromkeys([*found, *known.values()]))
    for path, after in ADDED.items():
        owner, _, field = path.rpartition(".")
        if owner == short and {field, after} <= set(order):
            order.remove(field)
            order.insert(order.index(after) + 1, field)
    return order


def _members(definition: str, known: Container[str], messages: Messages) -> list[str]:
    """The members of a definition's message, in place of embedded messages theirs."""
    message = message_named(definition, dict(messages)) or {}
    members: list[str] = []
    for name, type_name in message.values():
        embedded = name.lower() not in known and type_name in messages
        members += [one for one, _ in messages[type_name].values()] if embedded else [name]
    return members
