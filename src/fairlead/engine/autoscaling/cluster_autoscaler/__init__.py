"""Cluster Autoscaler 1.36: grows and shrinks node groups so that every pod fits.

Each loop works on one snapshot of the cluster. Simulations are forks of the snapshot. Upstream
iterates over maps in random order, and breaks ties at random. Here, the order of iteration is
fixed, and a seed decides ties.
"""
