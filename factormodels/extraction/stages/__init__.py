"""The stages from a response to judged claims; `factormodels.extraction.pipeline` joins them."""
