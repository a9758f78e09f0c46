"""Invariant 12, request fidelity: requests of the official SDKs' types, decoded and built again."""
