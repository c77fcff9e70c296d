"""Additional users, which --user adds."""

from __future__ import annotations

import pytest

from fairlead.cli.commands.up.user import require_own_contexts, user_of
from fairlead.whatif.input.error import InputError

EVERYBODY = "system:authenticated"


@pytest.mark.parametrize(
    ("text", "name", "groups"),
    [
        ("alice", "alice", ()),
        ("alice:dev,ops", "alice", ("dev", "ops")),
        ("alice:system:masters", "alice", ("system:masters",)),
        ("system:kube-scheduler", "system:kube-scheduler", ()),
        ("system:kube-scheduler:dev", "system:kube-scheduler", ("dev",)),
        ("system:node:node-1", "system:node:node-1", ("system:nodes",)),
        (
            "system:serviceaccount:ns:bot",
            "system:serviceaccount:ns:bot",
            ("system:serviceaccounts", "system:serviceaccounts:ns"),
        ),
        (
            "system:serviceaccount:ns:bot:dev,system:serviceaccounts",
            "system:serviceaccount:ns:bot",
            ("system:serviceaccounts", "system:serviceaccounts:ns", "dev"),
        ),
    ],
)
def test_names_and_groups_are_parsed(text, name, groups):
    found = user_of(text)
    assert (found.name, found.groups) == (name, (*groups, EVERYBODY))


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("", "NAME"),
        (":dev", "NAME"),
        ("a,b", "NAME"),
        ("a\nb", "NAME"),
        ("system:", "system:NAME"),
        ("system:node:", "system:node:NAME"),
        ("system:serviceaccount:ns", "system:serviceaccount:NAMESPACE:NAME"),
        ("system:serviceaccount::bot", "system:serviceaccount:NAMESPACE:NAME"),
    ],
)
def test_invalid_names_are_refused(text, form):
    with pytest.raises(InputError, match=f"must be {form} or {form}:GROUP"):
        user_of(text)


def test_only_with_the_default_name_is_a_context_named_as_its_user():
    users = [user_of("fairlead"), user_of("blue")]
    require_own_contexts(users, "blue")
    require_own_contexts(users[1:], "fairlead")
    with pytest.raises(InputError, match="fairlead: is the name of the administrator's context"):
        require_own_contexts(users, "fairlead")
