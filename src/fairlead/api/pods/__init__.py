"""Functions on pods for several packages: requests, volumes, host ports, images, QoS class."""
