"""Sweep: a collection on its way out, when its deletion waits for webhooks in between.

    handle -> delete, delete, ... --WebhookNeeded--> ask -> handle -> delete, ...

A request that is handled anew goes on with the object that waited: nobody asks about those before
it again, nor looks for them, and the answer shows all of them.
"""

from __future__ import annotations

from msgspec import Struct, field

from fairlead.apiserver.endpoints.collection.page import Listed


class Sweep(Struct):
    """`page` is what was there in the beginning; `done` are so many of it.

    `warnings` are what was said on the way.
    """

    page: Listed
    done: int = 0
    warnings: list[str] = field(default_factory=list)
