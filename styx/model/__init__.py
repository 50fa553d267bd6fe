"""The programming model: operators, functions, keys, contexts, and what every executor of functions decides alike."""
