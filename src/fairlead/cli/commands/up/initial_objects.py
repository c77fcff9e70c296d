"""Makes the initial objects of a `fairlead up` cluster from a snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.json import Json, text
from fairlead.api.text.count import counted
from fairlead.apiserver.error import Cause
from fairlead.apiserver.kind import (
    CUSTOM_RESOURCE_DEFINITION,
    JOB,
    KINDS,
    LEASE,
    NAMESPACE,
    NODE,
    POD,
    SERVICE_ACCOUNT,
    STATEFUL_SET,
    Kind,
)
from fairlead.apiserver.printers.age import human_duration
from fairlead.apiserver.registry.dump.object import DumpedObject
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.validation.apps.workload import check_claimed_template
from fairlead.apiserver.validation.core.pod.spec import check_template
from fairlead.cli.output.result_file import print_notice
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.whatif.snapshot.manifest import Manifest, pod_template_path
from fairlead.whatif.snapshot.snapshot import Snapshot
from fairlead.whatif.snapshot.validation.workload import WORKLOADS

OLD: Final[DurationNs] = seconds(86_400)
# Resources whose objects are left out. The new cluster's components create such objects themselves.
# Those in the snapshot belong to components of the other cluster.
_CREATED_BY_COMPONENTS: Final = (
    LEASE.resource,
    "events",
    "events.events.k8s.io",
    "apiservices.apiregistration.k8s.io",
    "certificatesigningrequests.certificates.k8s.io",
)
# (group, kind) of the kinds that a cluster serves without further definitions. Some of them are
# served only with an option. A reference to an absent owner of one of these kinds is removed.
_SERVED: Final = {(kind.group, kind.kind) for kind in KINDS}


def objects_of_cluster(snapshot: Snapshot) -> list[Json | DumpedObject]:
    """Return the objects of `snapshot`, made complete so that controllers accept them.

    Leases, Events, APIServices and CertificateSigningRequests are left out. Missing namespaces are
    added. If the snapshot has no ServiceAccounts, the ServiceAccounts that workloads name are
    added. Otherwise, the cluster would refuse the workloads' new pods. A line on stderr states how
    many ServiceAccounts are added.

    If an owner of an object is not in the result, the reference to this owner is removed.
    Otherwise, the garbage collector would delete the object. A line on stderr states how many
    objects lost an owner reference. Exception: a reference to an owner of a kind that the cluster
    does not serve is kept. The garbage collector ignores such a reference, but without it, another
    controller could adopt the object.
    """
    kept = [one for one in snapshot.manifests if one.kind.resource not in _CREATED_BY_COMPONENTS]
    objects, orphans = _with_present_owners(kept)
    if orphans:
        have = counted(orphans, "object has an owner", "objects have owners")
        problem = f"{have} outside of the dump; the references are removed"
        print_notice(f"{snapshot.source}: {problem}")
    accounts = list(_missing_accounts(kept))
    if accounts:
        are = counted(len(accounts), "ServiceAccount is", "ServiceAccounts are")
        problem = f"the dump has no serviceaccounts; {are} added for its workloads"
        print_notice(f"{snapshot.source}: {problem}")
    return [*_missing_namespaces(kept), *accounts, *objects]


def _with_present_owners(kept: Sequence[Manifest]) -> tuple[list[Json | DumpedObject], int]:
    """Return the objects of `kept`, and how many of them referred to absent owners.

    The references to absent owners are removed.
    """
    uids = {uid for one in kept if (uid := _uid(one))}
    served = _SERVED | {_defined(one) for one in kept if one.kind is CUSTOM_RESOURCE_DEFINITION}
    objects: list[Json | DumpedObject] = []
    orphans = 0
    for manifest in kept:
        owners = _owners(manifest)
        present = [one for one in owners if one.uid in uids or one.group_kind not in served]
        orphans += len(present) < len(owners)
        objects.append(manifest.content if present == owners else _with_owners(manifest, present))
    return objects, orphans


def _uid(manifest: Manifest) -> str:
    if manifest.view is not None:
        return manifest.view.metadata.uid
    return str((manifest.value.get("metadata") or {}).get("uid") or "")


class _Owner(Struct, frozen=True):
    uid: str
    group_kind: tuple[str, str]


def _owners(manifest: Manifest) -> list[_Owner]:
    if manifest.view is not None:
        views = manifest.view.metadata.owner_references
        return [_Owner(one.uid, _group_kind(one.api_version, one.kind)) for one in views]
    owners = (manifest.value.get("metadata") or {}).get("ownerReferences") or ()
    return [
        _Owner(str(one.get("uid")), _group_kind(str(one.get("apiVersion")), str(one.get("kind"))))
        for one in owners
    ]


def _group_kind(api_version: str, kind: str) -> tuple[str, str]:
    return api_version.rpartition("/")[0], kind


def _defined(definition: Manifest) -> tuple[str, str]:
    """Return the group and the kind that the CustomResourceDefinition `definition` defines."""
    value = definition.value
    return text(value, "spec", "group"), text(value, "spec", "names", "kind")


def _with_owners(manifest: Manifest, owners_kept: list[_Owner]) -> Json:
    """Return the object in `manifest`, with only the owner references `owners_kept`."""
    value, uids = manifest.value, {one.uid for one in owners_kept}
    owners = [one for one in value["metadata"]["ownerReferences"] if one.get("uid") in uids]
    return {**value, "metadata": {**value["metadata"], "ownerReferences": owners}}


def _missing_namespaces(manifests: list[Manifest]) -> Iterator[Json]:
    """Yield a Namespace for each namespace that contains objects but is not in `manifests`."""
    known = {one.ref.name for one in manifests if one.kind is NAMESPACE}
    used = {one.ref.namespace for one in manifests if one.kind.namespaced}
    for name in sorted(used - known):
        yield {"apiVersion": "v1", "kind": NAMESPACE.kind, "metadata": {"name": name}}


def _missing_accounts(manifests: list[Manifest]) -> Iterator[Json]:
    """Yield the ServiceAccounts that pod templates name, if `manifests` has no ServiceAccount.

    Every namespace of a cluster has the ServiceAccount `default`. So if a dump has no
    ServiceAccount, this kind of object was not dumped. `default` is not yielded, because a
    controller adds it to each namespace of the new cluster.

    upstream: plugin/pkg/admission/serviceaccount/admission.go: Admit
    """
    if any(one.kind is SERVICE_ACCOUNT for one in manifests):
        return
    names = {
        (one.ref.namespace, text(one.pod_template, "spec", "serviceAccountName"))
        for one in manifests
        if one.kind not in (POD, NODE)  # they have no template, and there are many of them
    }
    for namespace, name in sorted(names):
        if name not in ("", "default"):
            metadata = {"namespace": namespace, "name": name}
            yield {"apiVersion": "v1", "kind": SERVICE_ACCOUNT.kind, "metadata": metadata}


def print_age(snapshot: Snapshot, now: Instant) -> None:
    """Print a line on stderr if `snapshot` is so old that deadlines in it have probably passed.

    `snapshot` must contain times.
    """
    age = now - snapshot.taken_at
    if age >= OLD:
        option = "with --keep-time, the clock starts at that time"
        print_notice(f"{snapshot.source}: was taken {human_duration(age)} ago; {option}")


def print_invalid_templates(source: str, store: Store) -> None:
    """Print a line on stderr if the API server will refuse new pods of workloads in `store`.

    `source` is the snapshot from which the workloads were loaded. A snapshot can contain a workload
    with an invalid pod template if the template was edited by hand or written by a script. The
    running pods of the workload stay, but pods that are deleted are not replaced. Workloads that
    have a controller or want no pods now, such as finished Jobs, are left out.
    """
    found = [
        (one, cause)
        for kind in WORKLOADS
        for one in store.list(kind)
        if (cause := _template_error(kind, one)) is not None
    ]
    if found:
        first, cause = found[0]
        meta = first["metadata"]
        title = f"{first['kind']} {meta['namespace']}/{meta['name']}"
        others = f" and of {counted(len(found) - 1, 'other workload')}" if found[1:] else ""
        why = f"{cause.field}: {cause.message}"
        print_notice(f"{source}: new pods of {title}{others} will be refused: {why}")


def _template_error(kind: Kind, workload: Json) -> Cause | None:
    """Return the first error of the pod template of `workload`.

    Returns None if the template is valid, or if the workload creates no pods now.
    """
    owners, spec = workload["metadata"].get("ownerReferences") or (), workload["spec"]
    if spec.get("replicas") == 0 or spec.get("suspend"):
        return None
    if any(one.get("controller") for one in owners) or (kind is JOB and _has_ended(workload)):
        return None
    path, template = pod_template_path(kind), workload
    for name in path.split("."):
        template = template.get(name) or {}
    if not template:
        return None
    # The pods of a StatefulSet also have the volumes of its volumeClaimTemplates.
    is_claimed = kind is STATEFUL_SET
    errors = check_claimed_template(spec) if is_claimed else check_template(path, template)
    return next(iter(errors), None)


def _has_ended(job: Json) -> bool:
    """Return whether the Job is complete or has failed."""
    conditions = job.get("status", {}).get("conditions") or ()
    return any(
        one["type"] in ("Complete", "Failed") and one["status"] == "True" for one in conditions
    )
