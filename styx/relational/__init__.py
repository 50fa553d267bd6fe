"""Tables: rows that belong to an entity, their indexes, constraints and queries."""
