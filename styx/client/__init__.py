"""Clients: one interface, whichever way requests travel."""
