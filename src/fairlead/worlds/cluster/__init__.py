"""A real cluster: the engine reads it by list and watch, and its commands become API requests.

Modules that decide about requests, retries, outcomes and events receive the server's responses and
`now` as arguments. Only `sender`, `election`, `runner`, `extender_thread` and `http_server` use the
network or the clock.
"""
