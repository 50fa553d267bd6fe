"""The coordinator process: its protocol core, the workers that register with it, and the versions of the app."""
