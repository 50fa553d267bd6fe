"""The messages between workers and the coordinator, and a snapshot's manifest. Data only."""
