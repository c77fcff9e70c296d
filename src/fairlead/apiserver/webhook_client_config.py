"""WebhookClientConfig: how the server reaches a webhook, by its URL or by its Service.

Admission webhooks and conversion webhooks have the same `clientConfig`.

upstream: apiserver/pkg/util/webhook/client.go
"""

from __future__ import annotations

import base64

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.apiserver.kind import SERVICE
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.suspension import WebhookAnswer, WebhookCall, WebhookCalls


class WebhookClientConfig(Struct, frozen=True):
    """The `clientConfig` of a webhook, and the timeout of its calls in seconds.

    If `sends_timeout` is True, the timeout is also a parameter of the URL.
    """

    config: Json
    timeout_s: int
    sends_timeout: bool = True

    def post(self, body: bytes, storage: Storage) -> WebhookCalls[bytes]:
        """POST `body` to the webhook and return the body of its answer.

        Raises ValueError with the reason if the call fails, for example because the Service of the
        webhook is not in `storage`.
        """
        url, missing = self._endpoint(storage)
        answer = missing
        if answer is None:
            ca = base64.b64decode(self.config.get("caBundle") or "").decode("latin-1")
            answer = yield WebhookCall(url, ca, self.timeout_s, body, self.sends_timeout)
        if answer.failure:
            parameter = f"?timeout={self.timeout_s}s" if self.sends_timeout else ""
            posted = "" if answer.is_reached else f'Post "{url}{parameter}": '
            raise ValueError(f"{posted}{answer.failure}")
        return answer.body

    def _endpoint(self, storage: Storage) -> tuple[str, WebhookAnswer | None]:
        """Return (URL of the webhook, None), or (URL, answer) if the webhook's Service is missing.

        The answer states that the Service is missing.
        """
        if self.config.get("url"):
            return str(self.config["url"]), None
        service = self.config.get("service") or {}
        namespace, name = service.get("namespace", ""), service.get("name", "")
        found = storage.find(SERVICE, namespace, name)
        host = (found or {}).get("spec", {}).get("externalName") or f"{name}.{namespace}.svc"
        path = str(service.get("path") or "/").lstrip("/")
        missing = WebhookAnswer(failure=f'service "{name}" not found') if found is None else None
        return f"https://{host}:{service.get('port', 443)}/{path}", missing
