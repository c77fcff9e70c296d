"""PersistentVolumes and their claims (upstream: pkg/controller/volume/persistentvolume)."""
