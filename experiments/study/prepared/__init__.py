"""Results that a study computes once, before its units: answers of models, priors, selections."""
