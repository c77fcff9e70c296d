"""Devices: the device pools in ResourceSlices, and the devices allocated to claims."""
