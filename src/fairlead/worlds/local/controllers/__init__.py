"""Controllers that only a served cluster needs. They maintain objects that clients rely on."""
