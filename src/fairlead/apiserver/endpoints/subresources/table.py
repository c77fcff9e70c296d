"""The handlers of subresources; any other subresource is not served."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fairlead.apiserver.admission.suspension import WebhookCalls
from fairlead.apiserver.endpoints.collection.watch import Watch
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.endpoints.subresources.access_review import (
    self_subject_access_review,
    self_subject_review,
    self_subject_rules_review,
    subject_access_review,
    token_review,
)
from fairlead.apiserver.endpoints.subresources.binding import binding
from fairlead.apiserver.endpoints.subresources.connect import refuse_connection
from fairlead.apiserver.endpoints.subresources.eviction import eviction
from fairlead.apiserver.endpoints.subresources.finalize import finalize
from fairlead.apiserver.endpoints.subresources.log import log
from fairlead.apiserver.endpoints.subresources.pod_spec import ephemeral_containers, resize
from fairlead.apiserver.endpoints.subresources.scale import scale
from fairlead.apiserver.endpoints.subresources.status import status
from fairlead.apiserver.endpoints.subresources.token_request import token
from fairlead.apiserver.request import Response

SubresourceHandler = Callable[[RequestScope], Response | Watch | WebhookCalls[Response]]

# By subresource, or by the plural of a kind that can only be posted.
SUBRESOURCE_HANDLERS: Final[Mapping[str, SubresourceHandler]] = {
    "approval": status,
    "attach": refuse_connection,
    "binding": binding,
    "bindings": binding,
    "exec": refuse_connection,
    "ephemeralcontainers": ephemeral_containers,
    "eviction": eviction,
    "finalize": finalize,
    "localsubjectaccessreviews": subject_access_review,
    "log": log,
    "portforward": refuse_connection,
    "proxy": refuse_connection,
    "resize": resize,
    "scale": scale,
    "selfsubjectaccessreviews": self_subject_access_review,
    "selfsubjectreviews": self_subject_review,
    "selfsubjectrulesreviews": self_subject_rules_review,
    "status": status,
    "subjectaccessreviews": subject_access_review,
    "token": token,
    "tokenreviews": token_review,
}
