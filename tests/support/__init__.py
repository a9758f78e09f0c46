"""Helpers of the tests: streams, servers, clients and readers; no test stands here."""
