"""Running a study: its units, the processes they run in, and the folder that keeps them."""
