"""The users behind --user: NAME or NAME:GROUP,…, where the names of upstream's own have colons.

    alice:dev,ops                     anybody
    system:kube-scheduler             a component
    system:node:NAME                  a kubelet
    system:serviceaccount:NS:NAME     a service account, by a token of its own

Those of nodes and service accounts are in the groups that such users are always in. A name of
anybody else ends at its first colon.

upstream: apiserver/pkg/authentication/{user/user,serviceaccount/util}.go
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fairlead.apiserver.auth.authentication.token import authenticated
from fairlead.apiserver.request import ADMIN, User
from fairlead.whatif.input_error import InputError
from fairlead.worlds.local.kubeconfig import NAME

# The first one's context bears the name of the cluster.
_TAKEN: Final = (ADMIN.name, NAME)


@dataclass(frozen=True, slots=True)
class _Form:
    """Names that begin with `prefix`: what they look like, and which groups go with them."""

    prefix: str
    text: str
    groups: tuple[str, ...] = ()

    @property
    def parts(self) -> int:
        """How many there are between the colons of a name."""
        return self.text.count(":") + 1


_FORMS: Final = (
    _Form(
        "system:serviceaccount:",
        "system:serviceaccount:NAMESPACE:NAME",
        ("system:serviceaccounts", "system:serviceaccounts:{2}"),
    ),
    _Form("system:node:", "system:node:NAME", ("system:nodes",)),
    _Form("system:", "system:NAME"),
    _Form("", "NAME"),
)


def user_of(text: str) -> User:
    """The user that `text` names. Raises InputError."""
    form = next(one for one in _FORMS if text.startswith(one.prefix))
    parts = text.split(":", form.parts)
    name = ":".join(parts[: form.parts])
    is_whole = len(parts) >= form.parts and all(parts[: form.parts])
    if not is_whole or "," in name or not name.isprintable():
        problem = f"must be {form.text} or {form.text}:GROUP,…"
        raise InputError("--user", problem, object_name=text)
    if name in _TAKEN:
        raise InputError("--user", "is the administrator, who is there", object_name=name)
    own = (group.format(*parts) for group in form.groups)
    named = ",".join(parts[form.parts :]).split(",")
    return authenticated(name, tuple(dict.fromkeys(filter(None, (*own, *named)))))
