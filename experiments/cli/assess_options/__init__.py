"""Options of `factormodels assess`, a file for each reason to change them."""
