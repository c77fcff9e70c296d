"""Devices: the pools that ResourceSlices offer, and which devices are allocated."""
