"""Refuses custom resources that the schema of their CustomResourceDefinition does not allow.

The definition can be in the dump, or be applied together with the resource. If a resource of
Karpenter has no definition, only unknown fields are refused. Other resources without a definition
are not checked here; `batch_field` lists the fields of batch workloads.

upstream: apiextensions-apiserver/pkg/registry/customresource/strategy.go, validator.go,
apiserver/pkg/endpoints/handlers/create.go:createHandler
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.custom_type import CustomType
from fairlead.apiserver.apiextensions.definition.rule_cost import ExpressionLengthBudget
from fairlead.apiserver.apiextensions.definition.status import with_stored_versions
from fairlead.apiserver.apiextensions.definition.validation import causes
from fairlead.apiserver.apiextensions.schema.value_validation import NIL_PATH
from fairlead.apiserver.apiextensions.served_kind import custom_type
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import CUSTOM_RESOURCE_DEFINITION
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.schema.field_location import Notes
from fairlead.apiserver.schema.scalar import TypeMismatchError
from fairlead.apiserver.schema.unknown_field import UnknownFields
from fairlead.whatif.snapshot.api_refusal import refusal_of
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.worlds.local.bootstrap.karpenter_definitions import karpenter_kinds


class DefinedTypes:
    """The types of custom resources that the definitions in `inventory` define.

    Definitions that are later added to `inventory`, or replaced in it, are found too.
    """

    def __init__(self, inventory: Inventory) -> None:
        """Keep `inventory`, in which definitions are looked up when they are needed."""
        self._inventory = inventory
        # by name of the definition
        self._known: dict[str, tuple[Manifest, dict[str, CustomType]]] = {}

    def refuse_invalid(self, written: Sequence[Manifest], before: Manifest | None) -> None:
        """Raise InputError if the API server refuses one of the custom resources in `written`.

        The definitions of these resources are in the inventory or in `written`. A resource without
        a definition is checked only if it is a resource of Karpenter. `before` is the object that
        `written` replaces; None if all of `written` are new. If a definition is invalid, the error
        is about the definition.
        """
        definitions = Inventory([one for one in written if one.kind is CUSTOM_RESOURCE_DEFINITION])
        for one in written:
            self._refuse_invalid(one, before, definitions)

    def _refuse_invalid(
        self, resource: Manifest, before: Manifest | None, written: Inventory
    ) -> None:
        found = self._type_of(resource, written)
        if found is None:
            _refuse_unknown_fields_of_karpenter(resource, before)
            return
        notes = UnknownFields()
        old = None if before is None else before.value
        obj = resource.value
        if found.has_status:  # only requests to the subresource change the status
            obj = {key: value for key, value in obj.items() if key != "status"}
            obj |= {"status": old["status"]} if old and "status" in old else {}
        try:
            obj = found.pruned_and_defaulted(obj, notes)
            old = None if old is None else found.pruned_and_defaulted(old, Notes())
        except (TypeMismatchError, ApiError) as refused:
            raise resource.refuse(str(refused)) from None
        for path, _ in notes.found:
            raise resource.refuse("unknown field", field=path)
        for cause in found.causes(obj, old):
            field = "" if cause.field == NIL_PATH else cause.field
            raise resource.refuse(cause.message, field=field)

    def _type_of(self, resource: Manifest, written: Inventory) -> CustomType | None:
        """Return the type of `resource`; None if there is no definition of its kind.

        The definitions in `written` replace definitions of the inventory. Raises InputError if the
        definition is invalid, or does not serve the version of `resource`.
        """
        kind = resource.kind
        for definition, spec in chain(written.definitions(), self._inventory.definitions()):
            if (spec.group, spec.names.kind) == (kind.group, kind.kind):
                version = f"{kind.group}/{kind.version}"
                types = self._types_in(definition)
                if version not in types:
                    # upstream: apimachinery/pkg/api/meta/errors.go: NoKindMatchError
                    raise resource.refuse(
                        f'no matches for kind "{kind.kind}" in version "{version}"'
                    )
                return types[version]
        return None

    def _types_in(self, definition: Manifest) -> dict[str, CustomType]:
        """Return {apiVersion: type} of the versions that `definition` serves. Raises InputError."""
        known = self._known.get(definition.ref.name)
        if known is not None and known[0] is definition:
            return known[1]
        kind = CUSTOM_RESOURCE_DEFINITION
        try:
            stored = API_SERVER.default(kind, API_SERVER.decode(kind, definition.value))
        except ApiError as refused:
            raise refusal_of(definition.source, definition.title, refused) from None
        if not definition.ref.uid:  # the cluster of a dump has accepted its definitions
            for cause in causes(with_stored_versions(stored), ExpressionLengthBudget()):
                raise definition.refuse(cause.message, field=cause.field)
        spec = stored["spec"]
        types = {
            f"{spec['group']}/{one['name']}": custom_type(one)
            for one in spec["versions"] or ()
            if one["served"]
        }
        self._known[definition.ref.name] = definition, types
        return types


def _refuse_unknown_fields_of_karpenter(resource: Manifest, before: Manifest | None) -> None:
    """Raise InputError if `resource` has a field that Karpenter's definition of its kind lacks.

    A cluster may have a newer version of Karpenter. So the field is accepted if `before`, the
    object that `resource` replaces, has it as well. All fields of a new `resource` with a uid are
    accepted, because the uid shows that `resource` was read from a cluster. This function does not
    check values, because they are checked when Karpenter is configured. Missing fields are no
    error.
    """
    found = _types_of_karpenter().get((resource.kind.kind, resource.value["apiVersion"]))
    if found is None or (before is None and resource.value["metadata"].get("uid")):
        return
    known = () if before is None else _unknown_fields(found, before.value)
    for path in _unknown_fields(found, resource.value):
        if path not in known:
            raise resource.refuse("unknown field", field=path)


def _unknown_fields(of: CustomType, obj: Json) -> list[str]:
    """Return the paths of the fields of `obj` that the schema lacks; [] if a type is wrong."""
    notes = UnknownFields()
    try:
        of.pruned_and_defaulted(obj, notes)
    except (TypeMismatchError, ApiError):
        return []
    return [path for path, _ in notes.found]


@cache
def _types_of_karpenter() -> dict[tuple[str, str], CustomType]:
    """Return {(kind, apiVersion): type} of Karpenter's kinds."""
    found = {}
    for definition in karpenter_kinds():
        spec = API_SERVER.default(CUSTOM_RESOURCE_DEFINITION, definition)["spec"]
        for version in spec["versions"]:
            api_version = f"{spec['group']}/{version['name']}"
            found[spec["names"]["kind"], api_version] = custom_type(version)
    return found
