"""The service of orders: what was sold to whom, and how far it is."""
