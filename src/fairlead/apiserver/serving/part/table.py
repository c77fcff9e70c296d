"""Which part is answered by what; a part that is not here is not served."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fairlead.apiserver.request import Response
from fairlead.apiserver.serving.call import Call
from fairlead.apiserver.serving.part.binding import binding
from fairlead.apiserver.serving.part.container import inside
from fairlead.apiserver.serving.part.eviction import eviction
from fairlead.apiserver.serving.part.finalize import finalize
from fairlead.apiserver.serving.part.log import log
from fairlead.apiserver.serving.part.pod import ephemeral_containers, resize
from fairlead.apiserver.serving.part.review import (
    self_subject_access_review,
    self_subject_review,
    self_subject_rules_review,
    subject_access_review,
    token_review,
)
from fairlead.apiserver.serving.part.scale import scale
from fairlead.apiserver.serving.part.status import status
from fairlead.apiserver.serving.part.token import token
from fairlead.apiserver.serving.watch import Watch

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
