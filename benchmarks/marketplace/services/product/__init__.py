"""The service of products: what sellers offer, and at which price."""
