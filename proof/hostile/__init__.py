"""What hostile clients and strangers send, tried on a running engine or cluster that its user names."""
