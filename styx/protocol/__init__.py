"""What workers and the coordinator tell each other, and what a snapshot's manifest says. Data only."""
