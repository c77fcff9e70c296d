"""The removal of nodes: taint, drain and delete them."""
