"""Methods of the papers on a user's data: a function for each command."""
