"""Tables: the rows of any file, and data frames of them.

`records` reads the rows of JSON, JSON Lines, CSV, workbooks, Parquet and Arrow; `data_table`
returns them as a table. `arrow` and `workbooks` are the only modules that use pyarrow and openpyxl,
which do not validate their input: `arrow_extent`, `arrow_messages` and `parquet_footer` determine
the decompressed size of a file first.
"""
