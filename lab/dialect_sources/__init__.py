"""Compares the sources of our dialects with the parsers that vLLM and SGLang register."""
