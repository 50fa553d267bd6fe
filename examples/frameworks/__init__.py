"""The bank inside of web frameworks, and filled from PostgreSQL; docs/frameworks.md explains each."""
