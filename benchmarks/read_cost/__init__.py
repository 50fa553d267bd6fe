"""What reads outside the log cost the writers of a cluster: their rate, and the workers' processor time."""
