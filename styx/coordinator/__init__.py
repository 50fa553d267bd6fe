"""The coordinator: barriers, membership, generations and snapshot manifests. It never sees a request or a reply."""
