"""Validates the volumes of pods, PersistentVolumes and PersistentVolumeClaims."""
