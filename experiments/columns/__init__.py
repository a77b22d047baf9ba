"""Reading of tables of claims or responses: roles of columns, labels, numbers, the long frame."""
