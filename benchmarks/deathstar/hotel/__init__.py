"""DeathStarBench's hotel site with flights: searches, recommendations, logins, and reservations of a room and a seat.

`python -m benchmarks.deathstar.hotel run` needs no service and no configuration; `--help` shows the rest.
"""
