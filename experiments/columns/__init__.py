"""Any table of claims or responses in: which column is what, its labels and numbers, its frame."""
