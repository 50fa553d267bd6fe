"""The replayable log: the protocol, and its implementations in memory and in a SQLite file."""
