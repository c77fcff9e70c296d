"""Where a webhook is, and whom to trust there.

upstream: apiserver/pkg/util/webhook/client.go:ClientManager.HookClient
"""

from __future__ import annotations

import base64

from fairlead.api.json import Json
from fairlead.apiserver.kind import SERVICE
from fairlead.apiserver.request import WebhookAnswer
from fairlead.apiserver.storage.storage import Storage


def place_of(config: Json, storage: Storage) -> tuple[str, WebhookAnswer | None]:
    """The URL of a webhook, and what is to be said of one whose service is not there."""
    if config.get("url"):
        return str(config["url"]), None
    service = config.get("service") or {}
    namespace, name = service.get("namespace", ""), service.get("name", "")
    found = storage.find(SERVICE, namespace, name)
    host = (found or {}).get("spec", {}).get("externalName") or f"{name}.{namespace}.svc"
    path = str(service.get("path") or "/").lstrip("/")
    missing = WebhookAnswer(failure=f'service "{name}" not found') if found is None else None
    return f"https://{host}:{service.get('port', 443)}/{path}", missing


def authority_of(bundle: str) -> str:
    """The text of a bundle of authorities; whoever uses one that is no PEM text is told."""
    return base64.b64decode(bundle).decode("latin-1")
