"""The travel site's services: an operator a file, and what they share of the map and the calendar."""
