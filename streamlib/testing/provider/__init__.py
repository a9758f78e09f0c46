"""The loopback provider: a real HTTP server on 127.0.0.1 that speaks every wire.

It sends a recording, scripted turns, or a response made from the request. It consists mostly of
`parse_request` and `encoder`, so every feature of a wire can be tried without a key. Its public
names are those of `streamlib.testing`.
"""
