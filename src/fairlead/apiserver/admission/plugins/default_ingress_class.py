"""DefaultIngressClass: sets the class of Ingresses that do not name one.

upstream: plugin/pkg/admission/network/defaultingressclass/admission.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import AdmissionAttributes
from fairlead.apiserver.admission.plugins.default_class import default_class
from fairlead.apiserver.kind import INGRESS, INGRESS_CLASS
from fairlead.apiserver.storage.storage import Storage

IS_DEFAULT: Final = "ingressclass.kubernetes.io/is-default-class"
CLASS_BETA: Final = "kubernetes.io/ingress.class"


class DefaultIngressClass:
    """The admission plugin `DefaultIngressClass`."""

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Return the object; a new Ingress that names no class gets the default IngressClass."""
        obj = attributes.obj
        if attributes.kind is not INGRESS or not attributes.is_new:
            return obj
        spec, annotations = obj.get("spec") or {}, obj["metadata"].get("annotations") or {}
        if spec.get("ingressClassName") is not None or CLASS_BETA in annotations:
            return obj
        name = default_class(storage, INGRESS_CLASS, IS_DEFAULT)
        return {**obj, "spec": {**spec, "ingressClassName": name}} if name else obj
