"""The judge of tables: transactions that query the rows of an entity while others insert, move and delete rows.

Every row of a history is written with a number of its own, its *stamp*, and every write tells the stamp that it
replaced. So a history shows all versions of a row in their order. A query tells which versions it saw, and by that also
which rows it did not see: that is where phantoms show.
"""
