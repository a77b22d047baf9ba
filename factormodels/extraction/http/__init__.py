"""HTTP: permitted addresses, the transport, limits, retries and waits.

`addresses` parses addresses and determines which are public; `transport` connects to public
addresses only and limits the size of answers; `bounds` applies these limits to the clients of other
libraries; `requests` retries and follows redirects; `waits` reads how long a server asks to wait.
"""
