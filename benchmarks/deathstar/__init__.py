"""Two applications of DeathStarBench, each request a transaction across its services: hotel and movie."""
