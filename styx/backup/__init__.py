"""Backups of a cluster's store, and their restore into another cluster."""
