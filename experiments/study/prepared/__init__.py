"""What a study computes once, before its units: answers of models, learned priors, selections."""
