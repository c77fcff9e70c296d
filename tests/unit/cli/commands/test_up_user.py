"""Additional users, which --user adds."""

from __future__ import annotations

import pytest

from fairlead.cli.commands.up.user import user_of
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
