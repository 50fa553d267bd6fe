"""The targets of the project's speed, each a ratio of two things measured in turns on one machine."""
