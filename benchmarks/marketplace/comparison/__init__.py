"""`python -m benchmarks.marketplace compare`: the marketplace beside the same application on FastAPI and PostgreSQL."""
