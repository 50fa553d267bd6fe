"""Reports to people about the functions that a process runs: mistakes with their lines, log lines, warnings; and the
form of all log lines. Reports never affect an outcome.
"""
