"""Endpoints: the API server's REST handlers, without its socket.

`server.ApiServer.handle` takes a request and the time, and returns a response or a watch.

    request/       parses the path, the query parameters, the selectors and the body
    handlers/      one module per verb: create, update, patch, delete, get, list, watch, ...
    subresources/  status, scale, binding, eviction, log, token, ...
    collection/    list pages, continue tokens, watches
    response/      renders objects, lists, Tables and watch events
    post_start_hook/  controllers that run inside the server

upstream: apiserver/pkg/endpoints
"""
