"""Controllers that only a served cluster needs; they maintain objects that clients rely on."""
