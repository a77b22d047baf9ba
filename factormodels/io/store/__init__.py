"""Stores that persist between runs, in SQLite files: answers, pages, embeddings, results of a
folder.

`sqlite` opens SQLite files without running code in their schema; `tables` creates, checks, shares
and writes the files of this project; `results` is the store of a folder of results.
"""
