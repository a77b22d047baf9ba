"""Claims as FaStfact counts them: numbers of claims, agreement with people's, kinds of failure."""
