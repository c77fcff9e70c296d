"""The in-process API server: versioned objects and the rules under which they change.

Law: it imports `fairlead.api` and `fairlead.cel` only. `now` (ns since 1970) and the ids of new
objects are arguments, so equal requests in equal order give equal objects. Stored JSON values are
never mutated: a reader may keep one, but must not change it.

A package imports only those below it (`.importlinter`):

    http             requests and answers on a socket
    endpoints        REST handlers by verb, subresources, watches
    openapi          OpenAPI documents, built from discovery
    discovery        groups, versions and resources
    registry         the store, with a strategy for each kind
    admission        plugins, policies and webhooks
    apiextensions    custom resource definitions
    auth             authentication and authorization
    validation patch printers protobuf negotiation storage
    conversion defaulting error
    kind schema      which kinds there are, and their fields
"""
