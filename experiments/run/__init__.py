"""Running a study: units, journals, processes, resumption."""
