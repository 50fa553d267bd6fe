"""The schema of an app: what its operators declare, and what that makes of state that another version stored."""
