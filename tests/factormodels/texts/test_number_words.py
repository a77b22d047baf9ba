"""Numbers in digits of any notation, and in words."""

from __future__ import annotations

import pytest

from factormodels.texts.number_words import digits_value, numbers_joined, roman_value


@pytest.mark.parametrize(
    ("text", "language", "value"),
    [
        ("1,000", "en", "1000"),
        ("1.000", "de", "1000"),
        ("1.000", "en", "1000"),
        ("1,000", "de", "1000"),
        ("1 000", "fr", "1000"),
        ("1\u202f000\u202f000", "fr", "1000000"),
        ("1'234'567", "de", "1234567"),
        ("3.125", "en", "3.125"),
        ("3.125", "de", "3125"),
        ("3,50", "de", "3.5"),
        ("1.234,5", "de", "1234.5"),
        ("1,234.50", "en", "1234.5"),
        ("१०००", "hi", "1000"),
        ("١٢", "ar", "12"),
        ("−5", "en", "-5"),
        ("3.5.1901", "de", "3.5.1901"),
        ("0.000", "en", "0"),
    ],
)
def test_numbers_in_digits_have_one_form(text: str, language: str, value: str) -> None:
    assert digits_value(text, language) == value


@pytest.mark.parametrize(
    ("language", "words", "joined"),
    [
        ("en", "two hundred and five men", "205 men"),
        ("en", "two and three", "2 and 3"),
        ("en", "one of two", "one of 2"),
        ("en", "nineteen ninety nine", "1999"),
        ("en", "two thousand three hundred forty", "2340"),
        ("en", "three million two hundred thousand", "3200000"),
        ("en", "2.5 million", "2500000"),
        ("en", "1901 2000 20 five", "1901 2000 20 5"),
        ("en", "nineteenth", "19"),
        ("de", "neunzehnhundertzwölf", "1912"),
        ("de", "zweihundertfünf und dreitausend", "205 und 3000"),
        ("de", "einundzwanzig neunzehnten einen", "21 19 einen"),
        ("fr", "mille neuf cent quatre vingt dix", "1990"),
        ("fr", "vingt et un", "21"),
        ("fr", "soixante et onze", "71"),
        ("es", "mil novecientos noventa y nueve", "1999"),
        ("es", "dos mil millones", "2000000000"),
        ("it", "ventuno duecento", "21 200"),
        ("nl", "vierentwintig tweehonderd", "24 200"),
        ("ru", "двести пятьдесят тысяч", "250000"),
    ],
)
def test_numbers_in_words_become_digits(language: str, words: str, joined: str) -> None:
    assert " ".join(numbers_joined(words.split(), language)) == joined


@pytest.mark.parametrize(
    ("text", "value"),
    [("XIX", 19), ("IV", 4), ("II", 2), ("V", None), ("IIII", None), ("OX", None)],
)
def test_roman_numerals_of_several_letters_are_numbers(text: str, value: int | None) -> None:
    assert roman_value(text) == value
