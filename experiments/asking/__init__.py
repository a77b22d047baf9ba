"""Sessions with language models and searchers: key, budget, ledger, cache, replay, dry run."""
