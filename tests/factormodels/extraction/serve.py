"""A scripted server in a process of its own, so that its work is not counted as the client's.

Run as `python -m tests.factormodels.extraction.serve`: prints its address, then answers every
request with the label "entailment" and its log-probabilities until its input ends.
"""

from __future__ import annotations

import sys

from tests.factormodels.extraction.server import ScriptedServer, label_reply

REPLY = label_reply("entailment", 0.8, {"contradiction": 0.15, "neutral": 0.05})

if __name__ == "__main__":
    with ScriptedServer(lambda _request, _number: REPLY) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        sys.stdin.read()
