"""Admission: plugins that change or refuse a request after it is decoded and before it is stored.

A plugin reads one request (`attributes.AdmissionAttributes`) and the objects in storage. The plugin
returns the object to store or raises `ApiError`, and does not write to storage. The only exception
is ResourceQuota, which adds the usage of admitted objects to quotas.

`chain` lists the plugins in upstream's order.

upstream: staging/src/k8s.io/apiserver/pkg/admission, plugin/pkg/admission
"""
