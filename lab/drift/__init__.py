"""What of the official SDKs' unions the parsers and builders read: docs/drift.md."""
