"""Languages that texts are guessed to be written in."""

from __future__ import annotations

import pytest

from factormodels.texts.languages import checked_language, detected_language, usual_language
from tests.refusals import refused


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "The mill was built in 1871 and it burned."),
        ("de", "Die Mühle wurde 1871 gebaut und ist verbrannt."),
        ("fr", "Le moulin fut bâti en 1871 et il a brûlé."),
        ("es", "El molino fue construido en 1871 y está en ruinas."),
        ("it", "Il mulino fu costruito nel 1871 ed è bruciato."),
        ("pt", "O moinho foi construído em 1871 e não existe."),
        ("nl", "De molen werd gebouwd in 1871 en is verbrand."),
        ("pl", "Młyn został zbudowany w 1871 roku i się spalił."),
        ("sv", "Kvarnen byggdes 1871 och den är inte kvar."),
        ("cs", "Mlýn byl postaven v roce 1871 a už není."),
        ("ru", "Мельница была построена в 1871 году, но сгорела."),
        ("uk", "Млин був збудований у 1871 році, але згорів."),
        ("bg", "Мелницата е построена през 1871 година и е изгоряла."),
        ("hi", "चक्की 1871 में बनी थी और वह जल गई।"),
        ("mr", "गिरणी 1871 मध्ये बांधली होती आणि ती जळाली."),
        ("ar", "بنيت الطاحونة في عام 1871 ثم احترقت."),
        ("fa", "آسیاب در سال ۱۸۷۱ ساخته شد و سوخت."),
        ("zh", "磨坊建于1871年,后来烧毁了。"),
        ("ja", "水車は1871年に建てられた。"),
        ("el", "Ο μύλος χτίστηκε το 1871."),
    ],
)
def test_languages_are_recognized_by_words_letters_and_script(language: str, text: str) -> None:
    assert detected_language(text) == language


@pytest.mark.parametrize("text", ["", "1871", "Ada Bell.", "Kinu kilijengwa karibu, kikaungua."])
def test_a_text_without_known_words_has_no_language(text: str) -> None:
    assert detected_language(text) is None
    assert usual_language(text) == "en"


def test_addresses_say_nothing_of_a_language() -> None:
    assert detected_language("见 https://example.org/the/mill?of=the&who=is") == "zh"


def test_a_code_loses_its_region() -> None:
    assert checked_language(" pt-BR ") == "pt"
    refused("'x'", checked_language, "x")
