"""Parses --user: NAME or NAME:GROUP,…. The built-in `system:` names contain colons themselves.

    alice:dev,ops                     a user in two groups
    system:kube-scheduler             a component
    system:node:NAME                  a kubelet
    system:serviceaccount:NS:NAME     a service account; its token is not a JWT

Nodes and service accounts get the groups that Kubernetes gives them. A name that does not begin
with `system:` ends at the first colon.

upstream: apiserver/pkg/authentication/{user/user,serviceaccount/util}.go
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from fairlead.apiserver.auth.authentication.token import authenticated
from fairlead.apiserver.request import ADMIN, User
from fairlead.whatif.input.error import InputError
from fairlead.worlds.local.kubeconfig import entry_name


@dataclass(frozen=True, slots=True)
class _NameForm:
    """A form of user names: all names that begin with `prefix`.

    `text` shows the form in error messages. Users with such names are members of `groups`. In the
    name of a group, `{2}` stands for the third colon-separated part of the user's name.
    """

    prefix: str
    text: str
    groups: tuple[str, ...] = ()

    @property
    def parts(self) -> int:
        """The number of colon-separated parts in a name of this form."""
        return self.text.count(":") + 1


_FORMS: Final = (
    _NameForm(
        "system:serviceaccount:",
        "system:serviceaccount:NAMESPACE:NAME",
        ("system:serviceaccounts", "system:serviceaccounts:{2}"),
    ),
    _NameForm("system:node:", "system:node:NAME", ("system:nodes",)),
    _NameForm("system:", "system:NAME"),
    _NameForm("", "NAME"),
)


def user_of(text: str) -> User:
    """Return the user in `text`, a value of --user. Raises InputError."""
    form = next(one for one in _FORMS if text.startswith(one.prefix))
    parts = text.split(":", form.parts)
    name = ":".join(parts[: form.parts])
    is_whole = len(parts) >= form.parts and all(parts[: form.parts])
    if not is_whole or "," in name or not name.isprintable():
        problem = f"must be {form.text} or {form.text}:GROUP,…"
        raise InputError("--user", problem, object_name=text)
    if name == ADMIN.name:
        raise InputError("--user", "already exists (the administrator)", object_name=name)
    own = (group.format(*parts) for group in form.groups)
    named = ",".join(parts[form.parts :]).split(",")
    return authenticated(name, tuple(dict.fromkeys(filter(None, (*own, *named)))))


def require_own_contexts(users: Iterable[User], cluster: str) -> None:
    """Raise InputError if the context of a user has the name of the administrator's context.

    `cluster` is the name of the cluster and of the administrator's context.
    """
    for user in users:
        if entry_name(user.name, cluster) == cluster:
            problem = (
                "is the name of the administrator's context in the kubeconfig; choose another name "
                "for the user, or for the cluster with --name"
            )
            raise InputError("--user", problem, object_name=user.name)
