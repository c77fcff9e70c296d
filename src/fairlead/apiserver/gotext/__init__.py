"""Text that upstream produces with Go's fmt, encoding/json and reflect packages.

Refusals of the API server quote values as Go prints them. Clients and tests compare these messages,
so they are reproduced to the byte, in two forms:

- `value`: `%v`, `%T` and `%#v` of a decoded JSON value. A map prints as `map[a:1 b:<nil>]`, a list
  as `[1 x]`, a whole number from JSON as an int64, another one as a float64 in `%v` form.
- `definition`: parts of a CustomResourceDefinition as `field.Invalid` quotes them. Upstream
  validates its internal Go types, so a schema prints with Go's field names and with all fields
  that are nil.

upstream: fmt/print.go, encoding/json/encode.go, apimachinery/pkg/util/validation/field/errors.go
"""
