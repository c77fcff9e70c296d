"""Which part is answered by what; a part that is not here is not served."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fairlead.apiserver.endpoints.collection.watch import Watch
from fairlead.apiserver.endpoints.request_scope import Call
from fairlead.apiserver.endpoints.subresources.access_review import (
    self_subject_access_review,
    self_subject_review,
    self_subject_rules_review,
    subject_access_review,
    token_review,
)
from fairlead.apiserver.endpoints.subresources.binding import binding
from fairlead.apiserver.endpoints.subresources.connect import inside
from fairlead.apiserver.endpoints.subresources.eviction import eviction
from fairlead.apiserver.endpoints.subresources.finalize import finalize
from fairlead.apiserver.endpoints.subresources.log import log
from fairlead.apiserver.endpoints.subresources.pod_spec import ephemeral_containers, resize
from fairlead.apiserver.endpoints.subresources.scale import scale
from fairlead.apiserver.endpoints.subresources.status import status
from fairlead.apiserver.endpoints.subresources.token_request import token
from fairlead.apiserver.request import Response

Act = Callable[[Call], Response | Watch]

# By the name of the subresource, or the plural of a kind that is only ever posted.
PARTS: Final[Mapping[str, Act]] = {
    "approval": status,
    "attach": inside,
    "binding": binding,
    "bindings": binding,
    "exec": inside,
    "ephemeralcontainers": ephemeral_containers,
    "eviction": eviction,
    "finalize": finalize,
    "localsubjectaccessreviews": subject_access_review,
    "log": log,
    "portforward": inside,
    "proxy": inside,
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
