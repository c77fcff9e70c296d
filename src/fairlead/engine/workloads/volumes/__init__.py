"""Binds claims to PersistentVolumes (upstream: pkg/controller/volume/persistentvolume)."""
