"""Values as bytes: the codec of states, arguments and results, and which types survive it."""
