"""The service of carts: what customers put in them, their checkouts, and copies of the products' prices."""
