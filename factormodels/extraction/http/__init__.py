"""HTTP: which addresses are asked, through which transport, how long, and how often.

`addresses` reads addresses and tells which of them everybody can reach; `transport` connects to
those alone and bounds what comes back; `bounds` holds the bounds, for the clients of other
libraries too; `requests` repeats and redirects; `waits` reads how long a server asks to wait.
"""
