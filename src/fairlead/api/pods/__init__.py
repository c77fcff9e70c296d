"""Facts about pods that several packages need: requests, volumes, host ports, images, QoS class."""
