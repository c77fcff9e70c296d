"""A pod's claims, volumes and storage classes, and CSI drivers, as the volume plugins need them."""
