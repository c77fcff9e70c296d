"""Label requirements and their intersections, and the toleration of taints."""
