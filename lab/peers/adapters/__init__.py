"""One file a peer: how it is asked on each wire that it speaks, and how what it gave is read.
Imported only where the peer is installed."""
