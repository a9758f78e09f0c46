"""The gate on speed: ratios and growth."""
