"""The order in which Kubernetes' Go types declare their fields, which is their order in JSON.

The published protobuf messages (see protobuf_table.py) list their fields in the order of
declaration. `DECLARED` contains the order for types of apiextensions-apiserver, a module whose
messages protobuf_table.py does not read.

upstream: staging/src/k8s.io/api/<group>/<version>/types.go,
staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/types.go
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
""")


def in_order(definition: str, fields: Iterable[str], messages: Messages) -> list[str]:
    """Return `fields` in the order of the definition's Go type.

    `definition` is the full name of a definition. Fields that the Go type lacks come last, in
    alphabetical order.
    """
    known = {field.lower(): field for field in sorted(fields)}
    short = ".".join(definition.split(".")[-3:])
    meta = TYPE_META if {"metadata", *TYPE_META} <= set(fields) else ()
    declared = DECLARED.get(short) or _members(definition, known, messages)
    found = [known[name.lower()] for name in (*meta, *declared) if name.lower() in known]
    return list(dict.fromkeys([*found, *known.values()]))


def _members(definition: str, known: Container[str], messages: Messages) -> list[str]:
    """Return the fields of the definition's message, in the order of declaration.

    A field that is an embedded message, which JSON does not nest, is replaced by its own fields.
    """
    message = message_named(definition, dict(messages)) or {}
    members: list[str] = []
    for name, type_name in message.values():
        embedded = name.lower() not in known and type_name in messages
        members += [one for one, _ in messages[type_name].values()] if embedded else [name]
    return members
