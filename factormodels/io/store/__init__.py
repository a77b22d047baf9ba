"""What is kept between runs, in SQLite files: answers, pages, embeddings, results of a folder.

`sqlite` opens any file of SQLite without running what somebody else put into it; `tables` makes,
checks, shares and writes the files of this project; `results` is the store of a folder of results.
"""
