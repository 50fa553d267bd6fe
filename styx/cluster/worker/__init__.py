"""The worker process: one protocol core at a time, registered with the coordinator."""
