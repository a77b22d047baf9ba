def connect(app): pass
