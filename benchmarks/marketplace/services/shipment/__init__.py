"""The service of shipments: packages, and which of them are delivered next."""
