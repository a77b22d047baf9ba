"""The probe: questions of ours with known answers, put to a language model before it is relied on.

`questions` has the questions, `table` what each stage is asked and how its answers compare, and
`asking` asks; `log_probabilities` says what the log-probabilities of the answers are worth.
"""
