"""Factor graphs in the formats of other programs: UAI models, evidence and results, and BIF."""
