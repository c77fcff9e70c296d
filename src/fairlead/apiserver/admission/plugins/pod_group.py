"""Admission of PodGroups: PodGroupProtection and PodGroupWorkloadExists.

upstream: plugin/pkg/admission/scheduling/podgroupprotection/admission.go,
plugin/pkg/admission/podgroup/admission.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.api.text.field_problem import quoted
from fairlead.apiserver.admission.attributes import AdmissionAttributes
from fairlead.apiserver.admission.plugins.storage import with_finalizer
from fairlead.apiserver.error import ApiError, forbidden
from fairlead.apiserver.kind import POD_GROUP, WORKLOAD
from fairlead.apiserver.storage.storage import Storage

PROTECTION_FINALIZER: Final = "scheduling.k8s.io/podgroup-protection"


class PodGroupProtection:
    """The admission plugin `PodGroupProtection`."""

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Return the object; a new PodGroup gets its protection finalizer."""
        if attributes.kind is not POD_GROUP or not attributes.is_new:
            return attributes.obj
        return with_finalizer(attributes.obj, PROTECTION_FINALIZER)


class PodGroupWorkloadExists:
    """The admission plugin `PodGroupWorkloadExists`: the template of a PodGroup must exist."""

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Refuse a new PodGroup if its template does not exist.

        The PodGroup is also refused if the Workload that contains the template is being deleted.
        Raises ApiError 403.
        """
        obj = attributes.obj
        if attributes.kind is not POD_GROUP or not attributes.is_new:
            return obj
        template = (obj.get("spec") or {}).get("podGroupTemplateRef") or {}
        reference = template.get("workload")
        if reference is None:
            return obj
        name = reference.get("workloadName") or ""
        workload = storage.find(WORKLOAD, attributes.namespace, name)
        if workload is None:
            raise _refused(attributes, f"Workload {quoted(name)} not found")
        if workload["metadata"].get("deletionTimestamp"):
            raise _refused(attributes, f"Workload {quoted(name)} is being deleted")
        wanted = reference.get("podGroupTemplateName") or ""
        if all(one["name"] != wanted for one in workload["spec"]["podGroupTemplates"]):
            problem = f"PodGroupTemplate {quoted(wanted)} not found in Workload {quoted(name)}"
            raise _refused(attributes, problem)
        return obj


def _refused(attributes: AdmissionAttributes, problem: str) -> ApiError:
    why = f"PodGroup rejected: {problem}"
    return forbidden(POD_GROUP, attributes.namespace, attributes.name, why)
