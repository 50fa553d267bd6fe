"""Clients: one interface, whichever way requests travel. Nothing here runs a transaction."""
