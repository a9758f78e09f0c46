"""What clients see when targets fail: the tables of docs/gateway/routes.md.

    python -m lab.gateway_failures                    prints what the official SDKs see
    python -m lab.gateway_failures --agents HOME      prints what Claude Code and Codex see

The SDKs are asked in simulated time, so that 15 minutes of silence cost nothing. The agents run in
real time and are installed in HOME first (0.5 GB of npm).
"""
