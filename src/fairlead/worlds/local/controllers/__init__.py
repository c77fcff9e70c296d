"""Controllers that maintain objects for API clients; simulations run without them."""
