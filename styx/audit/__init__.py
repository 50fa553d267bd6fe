"""Recorded epochs, run again beside a deployment, and held against what it has answered and stored."""
