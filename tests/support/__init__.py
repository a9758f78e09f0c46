"""Helpers for tests: streams, servers, clients and readers. Most modules have no tests."""
