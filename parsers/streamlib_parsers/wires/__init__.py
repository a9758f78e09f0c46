"""One file a wire: frames in, verbs of the assembly out. No wire imports another; `invoke` alone picks a machine from a table."""
