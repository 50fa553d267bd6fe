"""Online Marketplace: eight services that sell, as one application whose every operation is one transaction.

The README of this folder lists the functions, rows and events. `app` is the application.
"""
