"""The in-process API server: versioned objects, and the rules for changing them.

`now` (ns since 1970) and the ids of new objects are arguments. Therefore the same requests in the
same order lead to the same objects. Stored JSON values are never mutated: a reader may keep a
value, but must not change it.

A package imports only packages on the lines below it (`.importlinter`):

    http             requests and responses on a socket
    endpoints        REST handlers by verb, subresources, watches
    openapi          OpenAPI documents, built from discovery
    discovery        groups, versions and resources
    registry         the store, with a strategy for each kind
    admission        plugins, policies and webhooks
    apiextensions    custom resource definitions
    auth             authentication and authorization
    webhook_client_config
    validation patch printers protobuf negotiation storage suspension
    conversion defaulting error
    kind             the kinds of objects, such as Pod
    schema           the fields of the kinds
"""
