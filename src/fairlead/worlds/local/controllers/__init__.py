"""Controllers that only a served cluster needs: they keep objects which clients rely on."""
