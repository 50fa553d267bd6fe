"""PostgreSQL's wire protocol over queries in SQL, read-only: for psql, drivers and tools that speak it."""
