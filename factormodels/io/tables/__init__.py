"""Tables: the rows of any file, and data frames of them.

`records` gives the rows of JSON, JSON Lines, CSV, workbooks, Parquet and Arrow; `data_table` the
frame. `arrow` and `workbooks` are the gates to pyarrow and openpyxl, which trust what they read:
`arrow_extent`, `arrow_messages` and `parquet_footer` count what a file stands for before they
unpack it.
"""
