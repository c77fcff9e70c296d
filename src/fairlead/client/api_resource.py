"""ApiResource: a resource of the API and the URL paths of its objects."""

from __future__ import annotations

from msgspec import Struct


class ApiResource(Struct, frozen=True):
    """A resource: its API version, kind and plural, such as `apps/v1`, `ReplicaSet`, `replicasets`.

    `only_namespace` limits lists and watches to one namespace; "" means all namespaces.
    """

    api_version: str
    kind: str
    plural: str
    is_namespaced: bool
    only_namespace: str = ""

    @property
    def name(self) -> str:
        """The plural, with the group if there is one: `replicasets.apps`."""
        group = self.api_version.rpartition("/")[0]
        return f"{self.plural}.{group}" if group else self.plural

    def collection(self, namespace: str = "") -> str:
        """Return the path of the objects in `namespace`.

        If `namespace` is "", `only_namespace` is used. If both are "", the path has no namespace.
        """
        root = (
            f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        )
        inside = namespace or self.only_namespace
        return f"{root}/namespaces/{inside}/{self.plural}" if inside else f"{root}/{self.plural}"

    def path(self, namespace: str, name: str, subresource: str = "") -> str:
        """Return the path of an object or of its subresource.

        `namespace` is ignored if the resource is cluster-scoped.
        """
        collection = self.collection(namespace if self.is_namespaced else "")
        return f"{collection}/{name}/{subresource}" if subresource else f"{collection}/{name}"
