"""The travel site's services: one operator in each file, and shared modules for the map and the calendar."""
