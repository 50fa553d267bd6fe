"""The service of sellers: who they are, their open orders, and their dashboard."""
