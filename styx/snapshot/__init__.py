"""Snapshots: parts, manifests, which of them are kept, and how state is loaded from them. Paper section 7."""
