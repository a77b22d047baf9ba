"""How far probabilities are from the frequencies that they name: errors, decompositions, tests."""
