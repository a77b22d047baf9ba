"""The probe: questions with known answers, put to a language model before its answers are used.

`questions` contains the questions, `table` the questions and comparison of answers for each stage,
`asking` the loop that asks, and `log_probabilities` the quality of the answers' log-probabilities.
"""
