"""The service of stock: how many pieces of each product there are, and how many of them are reserved."""
