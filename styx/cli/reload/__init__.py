"""`styx dev --reload`: one process that watches the app's files and keeps the socket, and one for each version of the
code. The next version is imported before anything is stopped. A version that cannot be imported, or does not fit the
stored state, changes nothing.
"""
