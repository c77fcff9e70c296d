"""ResourceStrategy: the rules that are specific to one kind.

`store.Store` has the steps that all kinds share. A strategy contains what one kind adds to these
steps, as data if possible and as functions otherwise. A kind without special rules needs no
strategy.

upstream: pkg/registry/<group>/<resource>/{strategy.go,storage/storage.go},
apiserver/pkg/registry/rest/{create,update,delete}.go for the interfaces
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.apiserver.json_equality import json_equal
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.validation.meta.format import dns_subdomain_problems
from fairlead.apiserver.validation.meta.kind_rules import KindRules

# --- selectable fields ---------------------------------------------------------------------------

# upstream: ToSelectableFields and SelectableFields in pkg/registry/*/strategy.go

# Returns the value of a field as field selectors compare it.
FieldReader = Callable[[Json], str]


def text_field(*path: str, absent: str = "") -> FieldReader:
    """Return a function that returns the field at `path` as text.

    If the field is missing, the function returns `absent`.
    """

    def read(obj: Json) -> str:
        value: Any = obj
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is None:
            return absent
        return str(value).lower() if isinstance(value, bool) else str(value)

    return read


FieldPath = tuple[str, ...]

# Metadata that a write of the status subresource may change, unless the kind says otherwise.
# upstream: PrepareForUpdate of the status strategies
OWNED_METADATA: Final = ("annotations", "finalizers", "labels", "managedFields", "ownerReferences")
ONLY_MANAGED_FIELDS: Final = ("managedFields",)
NO_RULES: Final = KindRules()
_NOT_SPEC: Final = ("apiVersion", "kind", "metadata", "status")


class GarbageCollection(StrEnum):
    """The default propagation policy of a kind, for DeleteOptions without a propagation policy.

    upstream: apiserver/pkg/registry/rest/delete.go:GarbageCollectionPolicy
    """

    DELETE_DEPENDENTS = "Background"
    ORPHAN_DEPENDENTS = "Orphan"
    UNSUPPORTED = "Unsupported"


class PreparationContext(Struct, frozen=True):
    """The state that a strategy may read while it prepares an object.

    `now` is in ns since 1970. If `dry_run` is True, the strategy must not allocate anything.
    """

    storage: Storage
    now: int
    dry_run: bool = False


class MirroredField(Struct, frozen=True):
    """A value that is stored both in a single field and in the first item of a list.

    If the two differ, the single field's value is used.
    """

    part: str  # the name of the object's member that contains both, such as `spec`
    single: str  # the name of the field
    listed: str  # the name of the list
    # The field of the first item that has the value; "" if the item itself is the value.
    key: str = ""


def is_respecified(old: Json, new: Json) -> bool:
    """Return whether `old` and `new` differ outside apiVersion, kind, metadata and status."""
    return not json_equal(_spec(old), _spec(new))


def _spec(obj: Json) -> Json:
    return {key: value for key, value in obj.items() if key not in _NOT_SPEC}


class ResourceStrategy(Struct, frozen=True, kw_only=True):
    """The rules of one kind, grouped by their use.

    Functions receive JSON objects and return new ones; they must not mutate the objects. Functions
    raise ApiError to refuse a request.
    """

    # --- create ------------------------------------------------------------------------------

    # Whether a generated name ends in a random suffix. If not, the name equals generateName.
    # upstream: names.NameGenerator of the strategies
    has_random_suffix: bool = True
    # Checks that come before validation. upstream: Store.BeginCreate
    begin_create: Callable[[Json, PreparationContext], None] | None = None
    # Whether a new object keeps the status that the client sent.
    accepts_status_on_create: bool = False
    # Maps (object, timestamp) to the status of a new object. If this is None, the status of a new
    # object is the zero value of its type.
    initial_status: Callable[[Json, str], Json] | None = None
    # Sets further fields of a new object. upstream: PrepareForCreate
    prepare_for_create: Callable[[Json, PreparationContext], Json] | None = None
    # Given (sent, stored), returns whether the new object `stored` has defaults that are not
    # persisted; see `unpersisted_defaults`.
    has_unpersisted_defaults: Callable[[Json, Json], bool] | None = None

    # --- update ------------------------------------------------------------------------------

    # Whether PUT creates a missing object, and whether PUT needs no resourceVersion.
    # upstream: rest/update.go:AllowCreateOnUpdate, AllowUnconditionalUpdate
    allow_create_on_update: bool = False
    allow_unconditional_update: bool = True
    # Whether an update of the whole object also changes its status.
    updates_status: bool = False
    # Given (old, new, context), returns `new` with the fields that the server sets or restores
    # (upstream: PrepareForUpdate).
    prepare_for_update: Callable[[Json, Json, PreparationContext], Json] | None = None
    # Whether an update from `old` to `new` increments metadata.generation.
    increments_generation: Callable[[Json, Json], bool] = is_respecified
    # Whether an object without a generation gets one at its first change. New objects of most
    # kinds have generation 1, or never get a generation; see `Kind.has_generation`.
    has_generation_once_changed: bool = False

    # --- update of a subresource -------------------------------------------------------------

    # By subresource: the function that returns the object to write, given (old, new, timestamp).
    # upstream: the status strategies
    prepare_subresource: Mapping[str, Callable[[Json, Json, str], Json]] = field(
        default_factory=dict
    )
    metadata_with_status: tuple[str, ...] = OWNED_METADATA
    # Fields of status that only the server sets.
    server_status: tuple[str, ...] = ()

    # --- validation --------------------------------------------------------------------------

    rules: KindRules = NO_RULES
    # By apiVersion: the rules of versions that do not use `rules`.
    rules_in_version: Mapping[str, KindRules] = field(default_factory=dict)

    # --- delete ------------------------------------------------------------------------------

    # upstream: rest/delete.go:DefaultGarbageCollectionPolicy
    garbage_collection: GarbageCollection = GarbageCollection.DELETE_DEPENDENTS
    # Maps (object, now, grace period in s or None) to the object marked for deletion. If this
    # function is None or returns None, an object is marked only if it has finalizers. upstream:
    # RESTGracefulDeleteStrategy.CheckGracefulDelete
    begin_deletion: Callable[[Json, int, int | None], Json | None] | None = None
    # The corresponding function for an object that is already marked for deletion.
    repeat_deletion: Callable[[Json, int, int | None], Json] | None = None
    # Whether something other than finalizers keeps an object that is marked for deletion.
    holds_deleted: Callable[[Json], bool] | None = None
    # Whether DELETE returns the object. upstream: Store.ReturnDeletedObject
    returns_deleted_object: bool = False
    # Warning for a DELETE without a propagation policy. upstream: WarningsOnDelete
    warning_without_policy: str = ""

    # --- form --------------------------------------------------------------------------------

    # Lists that are stored as null when empty.
    null_when_empty: tuple[FieldPath, ...] = ()
    mirrored: MirroredField | None = None

    # --- what clients see --------------------------------------------------------------------

    # Maps (stored object, now) to the object that GET of an object or a list returns. Watches
    # return stored objects. upstream: apiserver/pkg/registry/generic/registry/store.go: Decorator
    decorate: Callable[[Json, int], Json] | None = None
    # The warning in the response to every request. upstream: APILifecycleDeprecated of the type
    deprecation: str = ""
    # Maps (old object or None, new) to warnings. upstream: WarningsOnCreate, WarningsOnUpdate
    warnings: Callable[[Json | None, Json], Iterable[str]] | None = None
    # Fields that field selectors may name, in addition to metadata.name and metadata.namespace.
    selectable_fields: Mapping[str, FieldReader] | None = None
    # By apiVersion: the selectable fields of versions that do not use `selectable_fields`.
    selectable_in_version: Mapping[str, Mapping[str, FieldReader]] = field(default_factory=dict)
    # The message that rejects a field that is not selectable; {} is replaced by the field's name.
    unselectable_field: str = "field label not supported: {}"
    # Whether a field selector may name metadata.namespace.
    selects_namespace: bool = True
    # By subresource: the fields, besides spec, that a write to the subresource does not own.
    # upstream: GetResetFields of the strategies
    reset_fields: Mapping[str, tuple[FieldPath, ...]] = field(default_factory=dict)
    # If False, a write owns all its fields. Upstream's reset fields have no effect for such a kind,
    # because they are for a version that does not exist.
    resets_fields: bool = True
    # The path of the objects in etcd, which some error messages contain; "" means the plural.
    storage_prefix: str = ""

    def rules_of(self, kind: Kind) -> KindRules:
        """Return the validation rules of `kind`, which may depend on its API version."""
        return self.rules_in_version.get(kind.api_version, self.rules)


# The strategy of a built-in kind without rules of its own.
DEFAULT: Final = ResourceStrategy()
# The strategy of custom resources.
# upstream: apiextensions-apiserver/pkg/registry/customresource/strategy.go:NewStrategy
CUSTOM: Final = ResourceStrategy(
    allow_unconditional_update=False,
    metadata_with_status=ONLY_MANAGED_FIELDS,
    rules=KindRules(
        name=dns_subdomain_problems, accepts_any_finalizer=True, metadata_validations=0
    ),
)
