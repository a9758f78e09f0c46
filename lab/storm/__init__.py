"""A storm: thousands of streams through one client, each of which stops or fails in some way.

    python -X dev -m lab.storm --transport httpx --loop asyncio --streams 10000

Every stream has a tag of its own, in its URL and in the text of its response, so that any mixing
shows. The kinds of faults and the ways to stop are combined pairwise: their full product repeats
as long as streams are left. `tests/proof/test_storm.py` runs it for every transport and loop.
"""
