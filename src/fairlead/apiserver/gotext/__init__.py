"""Text that upstream produces with Go's fmt, encoding/json and reflect packages.

Error messages of the API server quote values as Go prints them. Clients and tests compare these
messages, so they are reproduced to the byte.

- `value`: `%v`, `%s`, `%#v` and `%T` of a decoded JSON value. A map prints as `map[a:1 b:<nil>]`, a
  list as `[1 x]`. A whole number from JSON is an int64, every other number is a float64.
- `definition`: parts of a CustomResourceDefinition as `field.Invalid` quotes them.

upstream: fmt/print.go, encoding/json/encode.go, apimachinery/pkg/util/validation/field/errors.go
"""
