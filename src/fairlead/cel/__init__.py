"""The Common Expression Language (CEL) as Kubernetes uses it.

    text -> syntax -> tree -> check -> types -> cost          for validation
                      tree -> interpreter -> closures         for evaluation

`compiler` checks an expression for the API server's validation; `program` evaluates it. `library`
contains the functions, `value` defines the types of values, and `error` contains the messages.
Types, messages, cost estimates and run-time costs are the same as upstream's.

Functions that are not in `library` are passed to `CelEnvironment`. For example, the API server
passes the functions of `authorizer`.

upstream: github.com/google/cel-go, apiserver/pkg/cel
"""
