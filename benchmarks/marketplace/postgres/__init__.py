"""The marketplace as a user would draw it without Styx: FastAPI and one PostgreSQL database, under SERIALIZABLE with
retries. It has checkouts and price updates, by the same rules, and leaves the same rows.
"""
