"""Limits of speed: ratios and growth."""
