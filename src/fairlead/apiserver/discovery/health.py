"""The paths `/healthz`, `/livez` and `/readyz`.

The checks have upstream's names, because a probe may exclude checks by name. Only the check `etcd`
of `/healthz` and `/readyz` can fail: it fails if the storage fails. Even then, `/livez` passes,
because a restart would not help.

upstream: staging/src/k8s.io/apiserver/pkg/server/healthz/healthz.go:handleRootHealth
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

_HOOKS: Final = (
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/peer-endpoint-reconciler-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/storage-readiness",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/aggregator-reload-proxy-client-cert",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-wait-for-first-sync",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
)
STORAGE: Final = "etcd"
_LIVEZ_CHECKS: Final = ("ping", "log", "loopback-serving-certificate", STORAGE, *_HOOKS)
CHECKS: Final = {
    "healthz": _LIVEZ_CHECKS,
    "livez": _LIVEZ_CHECKS,
    "readyz": ("ping", "log", "informer-sync", *_HOOKS, "shutdown"),
}


def health_report(
    endpoint: str, *, verbose: bool, excluded: Collection[str] = (), problem: str = ""
) -> tuple[int, str]:
    """Return (HTTP status, report) of `endpoint`, a key of CHECKS.

    If all checks pass and `verbose` is False, the report is `ok`; otherwise, it lists the checks.
    `excluded` are the checks to leave out. `problem` is the error text of a storage problem, or "".
    """
    failed = problem if endpoint != "livez" and STORAGE not in excluded else ""
    if not verbose and not failed:
        return 200, "ok"
    checks: tuple[str, ...] = CHECKS[endpoint]
    if failed and STORAGE not in checks:
        checks = (STORAGE, *checks)
    lines = list(_lines(checks, excluded, failed))
    unknown = [name for name in dict.fromkeys(excluded) if name not in checks]
    if unknown:
        quoted = ",".join(f'"{name}"' for name in sorted(unknown))
        lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}")
    end = f"{endpoint} check {'failed' if failed else 'passed'}"
    return 500 if failed else 200, "\n".join([*lines, end, ""])


def _lines(checks: Collection[str], excluded: Collection[str], failed: str) -> Iterator[str]:
    for name in checks:
        if name == STORAGE and failed:
            yield f"[-]{name} failed: {failed}"
        else:
            yield f"[+]{name}{' excluded:' if name in excluded else ''} ok"
