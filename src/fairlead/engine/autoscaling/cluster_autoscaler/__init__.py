"""Cluster Autoscaler 1.36: grows and shrinks node groups so that every pod has a place.

Each loop works on one snapshot of the cluster. Simulations are forks of the snapshot. Upstream
iterates over maps and breaks ties at random; here every such place has a fixed order.
"""
