"""The one interval of every score: which deviations it inverts, what it covers, compiled scores."""
