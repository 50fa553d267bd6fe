"""Numbers that travel: every request increments one counter, and the new value goes on to another slot."""
