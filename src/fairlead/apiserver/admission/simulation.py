"""SimulatedAdmission: the admission plugins of a simulation, and a record of the skipped checks.

A simulation runs only some of a server's plugins. Webhooks are not called; `Unchecked` counts the
calls that a server would make. `ObservedMutations` changes new pods as the real server's admission
changed the pods of the snapshot. A snapshot may lack kinds that a server always has. A plugin that
looks up objects of one of the following kinds runs only if the condition for the kind is met:

    Namespace       The Namespace `kube-system` exists. If it does, the other namespaces that
                    every server creates, such as `kube-node-lease`, count as existing too.
    ServiceAccount  The pod's namespace has a ServiceAccount `default`; or all of these are true:
                    `kube-system` exists, a simulated request has created the pod's namespace, and
                    the pod names an account other than `default`.
    RuntimeClass    The snapshot contains at least one RuntimeClass, or the pod's class exists.

The plugin NamespaceLifecycle is an exception: it always runs, but accepts missing namespaces if
`kube-system` does not exist.

Most plugins run only for requests, because a real server has already admitted the objects of a
snapshot. The plugins of `minimal_admission` also run for the objects of a snapshot, because a
snapshot can contain incomplete pods that were written by hand. `NOT_SIMULATED` names the server's
plugins that a simulation leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Final

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.api.pods.replicas import LoadedObjects
from fairlead.apiserver.admission.attributes import AdmissionAttributes, AdmissionPlugin, Operation
from fairlead.apiserver.admission.minimal import minimal_admission
from fairlead.apiserver.admission.observed_mutation import ObservedMutations
from fairlead.apiserver.admission.plugins.default_ingress_class import DefaultIngressClass
from fairlead.apiserver.admission.plugins.limit_ranger import LimitRanger
from fairlead.apiserver.admission.plugins.namespace_lifecycle import (
    SYSTEM_NAMESPACES,
    NamespaceLifecycle,
)
from fairlead.apiserver.admission.plugins.persistent_volume_claim_resize import (
    PersistentVolumeClaimResize,
)
from fairlead.apiserver.admission.plugins.pod_resize_validator import PodResizeValidator
from fairlead.apiserver.admission.plugins.pod_security import PodSecurity
from fairlead.apiserver.admission.plugins.runtime_class import RuntimeClass, RuntimeClassOverhead
from fairlead.apiserver.admission.plugins.service_account import DEFAULT_ACCOUNT, ServiceAccount
from fairlead.apiserver.admission.plugins.storage import DefaultStorageClass
from fairlead.apiserver.admission.plugins.taint_nodes_by_condition import TaintNodesByCondition
from fairlead.apiserver.admission.quota.resource_quota import ResourceQuota
from fairlead.apiserver.kind import NAMESPACE, POD, RUNTIME_CLASS, SERVICE_ACCOUNT, Kind
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.suspension import WebhookCalls, run_to_end

Completed = Callable[[Kind, Json], Json]

SYSTEM_NAMESPACE: Final = "kube-system"
_USERS: Final = "checks users"
_POD_GROUPS: Final = "checks PodGroups"
# Members that are read often (STYLE.md, rule 19).
_LOAD: Final = Operation.LOAD
# The plugins of a server that a simulation leaves out, with the reason.
NOT_SIMULATED: Final[Mapping[str, str]] = {
    "NodeRestriction": _USERS,
    "StorageObjectInUseProtection": "no new claim or volume is deleted before the pods that use it",
    "PodGroupProtection": _POD_GROUPS,
    "CertificateSigningRequests": _USERS,
    "PodTopologyLabels": "changes pods when they are bound",
    "NodeDeclaredFeatureValidator": "checks which changes older kubelets support",
    "DisabledFields": "a simulation keeps every field of its input",
    "PodGroupWorkloadExists": _POD_GROUPS,
    "RbacEscalation": _USERS,
    "PolicyAuthorization": _USERS,
}


class Unchecked(Struct):
    """The checks that admission skipped in a run.

    `plugins` maps each missing resource, such as `namespaces`, to the plugin that needed it.
    `webhooks` maps the name of a webhook to the number of requests that a server would have sent to
    it.
    """

    plugins: dict[str, str] = field(default_factory=dict)
    webhooks: dict[str, int] = field(default_factory=dict)


class SimulatedAdmission:
    """The admission plugins of one simulated store, in the order in which they run."""

    def __init__(
        self,
        suffix: Callable[[], str],
        completed: Completed,
        *,
        preemption_policies: bool = True,
        group_priorities: bool = False,
    ) -> None:
        """`suffix` returns five characters for generated names.

        `completed` decodes an object according to its kind's schema, and sets all its defaults. The
        CEL expressions of policies and webhooks read the result. `preemption_policies` and
        `group_priorities` are options of the plugin Priority.
        """
        self.unchecked = Unchecked()
        self.observed = ObservedMutations()
        self._listing = _Listing()
        self._added = _OfRequests()
        listed = NamespaceLifecycle(never_missing=SYSTEM_NAMESPACES)
        unlisted = NamespaceLifecycle(requires_namespace=False)
        accounts = ServiceAccount(suffix)
        self.plugins: tuple[AdmissionPlugin, ...] = (
            _OfRequests(
                _IfListed(listed, unlisted, NAMESPACE, self._listing, self.unchecked),
                LimitRanger(),
                _IfListed(accounts, None, SERVICE_ACCOUNT, self._listing, self.unchecked),
                TaintNodesByCondition(),
            ),
            *minimal_admission(
                preemption_policies=preemption_policies, group_priorities=group_priorities
            ),
            _OfRequests(
                DefaultStorageClass(),
                _IfListed(RuntimeClass(), None, RUNTIME_CLASS, self._listing, self.unchecked),
                DefaultIngressClass(),
                _Policies(_mutating, completed),
                self.observed,
                self._added,
            ),
            _ChecksOfRequests(
                PodSecurity(),
                PersistentVolumeClaimResize(),
                _IfListed(
                    RuntimeClassOverhead(), None, RUNTIME_CLASS, self._listing, self.unchecked
                ),
                PodResizeValidator(),
                _Policies(_validating, completed),
                _UncalledWebhooks(self.unchecked, completed),
                # last: counts against quotas, so no other plugin may refuse afterwards
                ResourceQuota(),
            ),
        )

    def observe(self, loaded: LoadedObjects, storage: Storage) -> None:
        """Record which objects the snapshot contains, and how the cluster's admission changed pods.

        The recorded objects are those that plugins look up, such as Namespaces. `loaded` are the
        objects of the snapshot; `storage` contains exactly these objects.
        """
        self._listing.observe(storage)
        self.observed.observe(loaded)

    def add(self, webhook: AdmissionPlugin) -> None:
        """Run `webhook` for each request, after all other mutating plugins."""
        self._added.plugins = (*self._added.plugins, webhook)


class _OfRequests:
    """Runs each of `plugins` in turn for a request, but not for an object of a snapshot."""

    def __init__(self, *plugins: AdmissionPlugin) -> None:
        self.plugins = plugins

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        if attributes.operation is _LOAD:
            return attributes.obj
        for plugin in self.plugins:
            admitted = plugin.admit(attributes, storage)
            if admitted is not attributes.obj:
                attributes = attributes.with_object(_object(admitted))
        return attributes.obj


class _ChecksOfRequests(_OfRequests):
    """Like `_OfRequests`, but for plugins that only check objects (`CHECKS_ONLY`)."""

    CHECKS_ONLY: ClassVar[bool] = True


class _Listing(Struct):
    """Records whether the loaded snapshot contains the objects that plugins look up.

    `accounts` is True if the snapshot has ServiceAccounts. `runtime_classes` is True if it has
    RuntimeClasses. `namespaces` are the names of its Namespaces.
    """

    accounts: bool = False
    runtime_classes: bool = False
    namespaces: frozenset[str] = frozenset()

    def observe(self, storage: Storage) -> None:
        """Record which objects the snapshot contains; `storage` must contain only the snapshot."""
        self.accounts = storage.count(SERVICE_ACCOUNT) > 0
        self.runtime_classes = storage.count(RUNTIME_CLASS) > 0
        self.namespaces = frozenset(name for (_, name), _ in storage.stored_items(NAMESPACE))

    def has(self, kind: Kind, attributes: AdmissionAttributes, storage: Storage) -> bool:
        """Return whether the snapshot includes the objects of `kind` that admission looks up.

        If `kind` is Namespace, `attributes` may describe a request for any object. For any other
        `kind`, `attributes` must describe a request for a new pod.
        """
        if kind is NAMESPACE:
            return _has_namespaces(storage)
        if kind is SERVICE_ACCOUNT:
            return self._has_account(attributes, storage)
        name = _runtime_class(attributes)
        return self.runtime_classes or bool(name and storage.find(RUNTIME_CLASS, "", name))

    def lacks(self, kind: Kind) -> bool:
        """Return whether the snapshot has no objects of `kind`, a kind that plugins look up."""
        if kind is NAMESPACE:
            return not self.namespaces
        return not (self.accounts if kind is SERVICE_ACCOUNT else self.runtime_classes)

    def _has_account(self, attributes: AdmissionAttributes, storage: Storage) -> bool:
        namespace = attributes.namespace
        if storage.find(SERVICE_ACCOUNT, namespace, DEFAULT_ACCOUNT) is not None:
            return True
        # A controller that is not simulated creates `default`. The snapshot may lack accounts that
        # its namespaces have. If it lists no Namespaces, it may lack accounts of every namespace.
        known = namespace in self.namespaces or namespace in SYSTEM_NAMESPACES
        is_new = not known and _has_namespaces(storage)
        return is_new and _account(attributes) != DEFAULT_ACCOUNT


class _IfListed(Struct, frozen=True):
    """Runs `plugin` if the snapshot includes the objects of `kind` that `plugin` looks up.

    If these objects are missing, the plugin `otherwise` runs. If `otherwise` is None, the request
    is admitted. `unchecked` gets the name of `plugin` if a new pod needs an object of `kind`, but
    the snapshot has no objects of this kind.

    Namespaces are looked up for all requests. ServiceAccounts and RuntimeClasses are looked up only
    for new pods. If `kind` is one of these two, all requests that do not create a pod are admitted,
    and neither plugin runs.
    """

    plugin: AdmissionPlugin
    otherwise: AdmissionPlugin | None
    kind: Kind
    listing: _Listing
    unchecked: Unchecked

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        if self.kind is not NAMESPACE and not _is_new_pod(attributes):
            return attributes.obj  # namespaces are looked up for all requests
        if self.listing.has(self.kind, attributes, storage):
            return _object(self.plugin.admit(attributes, storage))
        if _looks_up(self.kind, attributes) and self.listing.lacks(self.kind):
            self.unchecked.plugins.setdefault(self.kind.plural, type(self.plugin).__name__)
        if self.otherwise is None:
            return attributes.obj
        return _object(self.otherwise.admit(attributes, storage))


def _has_namespaces(storage: Storage) -> bool:
    return storage.find(NAMESPACE, "", SYSTEM_NAMESPACE) is not None


def _looks_up(kind: Kind, attributes: AdmissionAttributes) -> bool:
    """Return whether the admission of a new pod looks up an object of `kind`."""
    if not _is_new_pod(attributes):
        return False
    if kind is NAMESPACE:
        return True
    if kind is SERVICE_ACCOUNT:  # every namespace has the account `default`
        return _account(attributes) != DEFAULT_ACCOUNT
    return bool(_runtime_class(attributes))


def _account(attributes: AdmissionAttributes) -> str:
    """Return the name of the ServiceAccount of a pod."""
    spec = attributes.obj["spec"]
    return str(spec.get("serviceAccountName") or spec.get("serviceAccount") or DEFAULT_ACCOUNT)


def _runtime_class(attributes: AdmissionAttributes) -> str:
    """Return the name of the RuntimeClass of a pod; "" if it names none."""
    return str(attributes.obj["spec"].get("runtimeClassName") or "")


def _is_new_pod(attributes: AdmissionAttributes) -> bool:
    return attributes.kind is POD and attributes.is_new


class _Policies(Struct):
    """Applies admission policies to requests of users, after all defaults of the object are set.

    `load` imports CEL and returns the admission plugin that evaluates the policies. Because the
    import takes time, `load` is not called before the first request of a user.
    """

    load: Callable[[], AdmissionPlugin]
    completed: Completed
    plugin: AdmissionPlugin | None = None

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        if attributes.write.user is None:
            return attributes.obj
        whole = _completed(attributes, self.completed)
        if self.plugin is None:
            self.plugin = self.load()
        admitted = _object(self.plugin.admit(whole, storage))
        return attributes.obj if admitted == whole.obj else admitted


def _mutating() -> AdmissionPlugin:
    from fairlead.apiserver.admission.policy.mutating import (  # noqa: PLC0415
        MutatingAdmissionPolicy,
    )

    return MutatingAdmissionPolicy()


def _validating() -> AdmissionPlugin:
    from fairlead.apiserver.admission.policy.validating import (  # noqa: PLC0415
        ValidatingAdmissionPolicy,
    )

    return ValidatingAdmissionPolicy()


class _UncalledWebhooks(Struct, frozen=True):
    """Counts the requests that a server would have sent to webhooks."""

    unchecked: Unchecked
    completed: Completed

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        for name in self._matching(attributes, storage):
            self.unchecked.webhooks[name] = self.unchecked.webhooks.get(name, 0) + 1
        return attributes.obj

    def _matching(self, attributes: AdmissionAttributes, storage: Storage) -> Iterator[str]:
        if attributes.write.user is not None:
            # Imports CEL, for match conditions.
            from fairlead.apiserver.admission.webhooks.plugin import (  # noqa: PLC0415
                matching_webhooks,
            )

            yield from matching_webhooks(_completed(attributes, self.completed), storage)


def _completed(attributes: AdmissionAttributes, completed: Completed) -> AdmissionAttributes:
    """Return `attributes` with all defaults set in its objects."""
    if attributes.subresource not in ("", "status"):
        return attributes
    kind, old = attributes.kind, attributes.old
    return AdmissionAttributes(
        attributes.operation,
        kind,
        completed(kind, attributes.obj),
        None if old is None else completed(kind, old),
        attributes.subresource,
        attributes.write,
        attributes.reinvocation,
    )


def _object(admitted: Json | WebhookCalls[Json]) -> Json:
    """Return `admitted`, the result of a plugin that calls no webhooks."""
    return admitted if isinstance(admitted, dict) else run_to_end(admitted)
