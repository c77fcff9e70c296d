"""Volumes of pods, PersistentVolumes and PersistentVolumeClaims."""
