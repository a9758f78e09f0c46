"""A prompt made ready for one target: repair, origins, targets, the report, and `build`."""
