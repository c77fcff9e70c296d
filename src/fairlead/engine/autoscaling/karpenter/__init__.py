"""Karpenter core 1.13: decides which nodes to create for pending pods, and which nodes to disrupt.

Decisions depend only on the cluster's objects, the instance types, the options and `now`. If
upstream's choice depends on the order of a Go map, the first key in alphabetical order is used.

apis, labels             custom resources; names of labels and annotations
options, config          upstream's settings; the configuration of the simulated Karpenter
scheduling/              requirements and their intersections; taints
cloudprovider/           instance types and offerings; a table for fast queries
state/                   the cluster as Karpenter sees it
provisioning/            pending pods become NodeClaims
disruption/              nodes become candidates, candidates become commands
nodeclaim/               NodeClaims from launch to removal, their conditions and expiration
static/                  NodePools with a fixed number of nodes
overlay                  NodeOverlays: changed prices and capacity
pod, pdb                 whether a pod or a PodDisruptionBudget prevents a disruption
go_sort, resource_text   Go's sort algorithm; quantities as upstream prints them

upstream: kubernetes-sigs/karpenter v1.13, pkg/
"""
