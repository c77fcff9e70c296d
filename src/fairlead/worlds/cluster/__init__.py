"""A real cluster: the engine reads it by list and watch, and its commands are API requests.

Code that decides (requests, retries, outcomes, events) takes answers and `now` as arguments; only
`sender`, `election`, `runner` and `http_server` use the network and the clock.
"""
