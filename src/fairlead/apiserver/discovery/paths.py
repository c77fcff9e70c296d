"""The document at `/`: all served paths except those of objects.

upstream: staging/src/k8s.io/apiserver/pkg/server/routes/index.go
"""

from __future__ import annotations

from typing import Final

from fairlead.apiserver.discovery.health import CHECKS
from fairlead.apiserver.registry.served_kinds import ServedKinds

_FIXED: Final = (
    "/.well-known/openid-configuration",
    "/api",
    "/api/v1",
    "/apis",
    "/apis/",
    "/flagz",
    "/metrics",
    "/metrics/slis",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    "/openid/v1/jwks",
    "/statusz",
    "/version",
)


def paths(registry: ServedKinds) -> dict[str, list[str]]:
    """The paths, sorted bytewise."""
    groups = [group for group in registry.groups() if group]
    versions = [
        f"/apis/{group}/{version}" for group in groups for version in registry.versions(group)
    ]
    health = [f"/{endpoint}/{check}" for endpoint, checks in CHECKS.items() for check in checks]
    roots = [f"/{endpoint}" for endpoint in CHECKS]
    served = (*_FIXED, *(f"/apis/{group}" for group in groups), *versions, *roots, *health)
    return {"paths": sorted(served)}
