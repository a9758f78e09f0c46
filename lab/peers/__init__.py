"""The same bytes to us and to our peers: conditions that hurt users, on one scripted server, and
what each library makes of them.

python -m lab.peers prepare --home FOLDER    environments with the peers, one for each set that
can live together python -m lab.peers run --home FOLDER        every case through every peer;
writes docs/comparison.md
"""
