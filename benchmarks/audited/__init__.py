"""`styx audit` beside clusters under faults: how much is judged, and that nothing differs."""
