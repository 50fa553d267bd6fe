"""Answers in SQL, judged: random queries against a serial replay of the log up to the epoch that each has read at."""
