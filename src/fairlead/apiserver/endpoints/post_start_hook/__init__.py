"""Post-start hooks: the controllers that run inside kube-apiserver.

    definition_controller    serves the kinds of CustomResourceDefinitions
    status_reconcilers       statuses of FlowSchemas and APIServices
    ip_address_reconciler    one IPAddress for each cluster IP

They are part of the server, as upstream, because clients rely on them without any other process: a
custom resource is served, and discovery lists it, when the request that created its definition has
been answered. Each hook notes changes of the store and acts on them between requests, when the
server calls `settle`. They write to the store directly; every other controller returns commands.

upstream: apiextensions-apiserver/pkg/apiserver/apiserver.go:AddPostStartHookOrDie,
pkg/controlplane/apiserver/server.go, kube-aggregator/pkg/apiserver/apiserver.go
"""
