"""Post-start hooks: the controllers that run inside kube-apiserver.

    definition_controller    serves the kinds of CustomResourceDefinitions
    status_reconcilers       writes statuses of FlowSchemas and APIServices
    ip_address_reconciler    keeps one IPAddress for each cluster IP

As in upstream, these controllers are part of the server: clients rely on them even if no other
process runs. Each hook records changes of the store. The hook handles the changes between requests,
when the server calls `reconcile`. Hooks write to the store directly; all other controllers return
commands.

upstream: apiextensions-apiserver/pkg/apiserver/apiserver.go:AddPostStartHookOrDie,
pkg/controlplane/apiserver/server.go, kube-aggregator/pkg/apiserver/apiserver.go
"""
