"""The Common Expression Language (CEL) as Kubernetes uses it.

    text -> syntax -> tree -> check -> types -> cost          is it valid, and may it be stored?
                      tree -> interpreter -> closures         what does it say of these values?

`compiler` does the first for the API server's validation, `program` the second. `library` has the
functions, `value` the types of values, `error` the messages. Every step is upstream's: the same
types, the same estimates, the same cost units at run time, the same words.

It imports `fairlead.api` and nothing above it. Functions that need more than their arguments are
given to `CelEnvironment` by those who have it, as the API server does with `authorizer`.

upstream: github.com/google/cel-go, apiserver/pkg/cel
"""
