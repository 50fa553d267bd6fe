"""Two applications of DeathStarBench, each a transaction across many of its services: hotel reservation, movie review."""
