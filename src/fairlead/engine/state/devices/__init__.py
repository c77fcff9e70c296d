"""Devices: the pools in ResourceSlices, and the allocated devices."""
