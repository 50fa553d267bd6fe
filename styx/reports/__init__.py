"""What a process tells people of the functions that it runs: mistakes with their lines, log lines, warnings; and how
all its log lines look. Never part of an outcome.
"""
