"""The gateway process of a cluster."""
