"""Factor graphs as other programs write them: UAI models, their evidence and results, and BIF."""
