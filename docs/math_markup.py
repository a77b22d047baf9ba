def connect(app):
    pass
