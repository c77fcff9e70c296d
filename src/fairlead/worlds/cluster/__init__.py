"""A real cluster, which the engine reads by list and watch, and changes by API requests.

Modules that decide about requests, retries, outcomes and events receive the server's responses and
`now` as arguments. Only `sender`, `election`, `runner`, `extender_thread` and `http_server` use the
network or the clock.
"""
