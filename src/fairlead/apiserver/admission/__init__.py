"""Admission: plugins that change or refuse a request after decoding and before storage.

Law: a plugin reads one request (`attributes.Attributes`) and the objects in storage. It returns the
object to store or raises `ApiError`; it writes nothing.

`chain` lists the plugins in upstream's order. Plugins that are one module each are in `plugins`;
`webhooks`, `policy` and `quota` are plugins of several modules. `match` (rules, selectors, match
conditions) and `cel` (the variables of an expression) are shared by webhooks and policies.

upstream: staging/src/k8s.io/apiserver/pkg/admission, plugin/pkg/admission
"""
