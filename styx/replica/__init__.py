"""A replica: follows a cluster's state beside it, and answers queries in SQL. It never writes to store or log."""
