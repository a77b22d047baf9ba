"""Numbers in texts, in any notation: digits of any script, Roman numerals, words.

``1,000``, ``1.000``, ``1 000``, ``१०००`` and ``one thousand`` are the same number. *One* alone is
not read as a number, since it is usually an article or a pronoun.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache

from factormodels.texts.languages import word_set

DIGITS = r"(?:(?<![\w.,)])[-−+])?\d+(?:[.,'’٫٬]\d+|[ \u00a0\u202f]\d{3}(?!\d))*"
"""Pattern of a number in digits, with its sign and its separators."""

_GROUPED = re.compile(r"\d{1,3}(?:[.,'’٬ \u00a0\u202f]\d{3})+")
_DECIMAL_POINT = frozenset(("en", "zh", "ja", "hi", "mr", "ur"))
"""Languages with a decimal point; the others have a decimal comma."""

_ROMAN = re.compile(r"(?=..)M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def _values(listed: str) -> dict[str, int]:
    """Return values by case-folded word, from text such as "two 2 three 3"."""
    parts = listed.casefold().split()
    return {word: int(value) for word, value in zip(parts[::2], parts[1::2], strict=True)}


_WORDS: Mapping[str, Mapping[str, int]] = {
    "en": _values(
        """zero 0 one 1 two 2 three 3 four 4 five 5 six 6 seven 7 eight 8 nine 9 ten 10 eleven 11
        twelve 12 thirteen 13 fourteen 14 fifteen 15 sixteen 16 seventeen 17 eighteen 18 nineteen
        19 twenty 20 thirty 30 forty 40 fifty 50 sixty 60 seventy 70 eighty 80 ninety 90 hundred
        100 hundreds 100 thousand 1000 thousands 1000 million 1000000 millions 1000000 billion
        1000000000 trillion 1000000000000 dozen 12 second 2 third 3 fourth 4 fifth 5 sixth 6
        seventh 7 eighth 8 ninth 9 tenth 10 eleventh 11 twelfth 12 thirteenth 13 fourteenth 14
        fifteenth 15 sixteenth 16 seventeenth 17 eighteenth 18 nineteenth 19 twentieth 20 thirtieth
        30 fortieth 40 fiftieth 50 sixtieth 60 seventieth 70 eightieth 80 ninetieth 90 hundredth
        100 twice 2"""
    ),
    "de": _values(
        """null 0 ein 1 eins 1 zwei 2 drei 3 vier 4 fünf 5 sechs 6 sieben 7 acht 8 neun 9 zehn 10
        elf 11 zwölf 12 sechzehn 16 siebzehn 17 dreizehn 13 vierzehn 14 fünfzehn 15 achtzehn 18
        neunzehn 19 zwanzig 20 dreißig 30 vierzig 40 fünfzig 50 sechzig 60 siebzig 70
        achtzig 80 neunzig 90 million 1000000 millionen 1000000 milliarde 1000000000 milliarden
        1000000000 billion 1000000000000 billionen 1000000000000 dutzend 12 dritte 3 dritten 3
        dritter 3 drittes 3 siebte 7 siebten 7 zweimal 2"""
    ),
    "fr": _values(
        """zéro 0 un 1 une 1 deux 2 trois 3 quatre 4 cinq 5 six 6 sept 7 huit 8 neuf 9 dix 10 onze
        11 douze 12 treize 13 quatorze 14 quinze 15 seize 16 vingt 20 vingts 20 trente 30 quarante
        40 cinquante 50 soixante 60 septante 70 huitante 80 nonante 90 cent 100 cents 100 mille
        1000 million 1000000 millions 1000000 milliard 1000000000 milliards 1000000000 douzaine 12
        deuxième 2 seconde 2 troisième 3 quatrième 4 cinquième 5 sixième 6 septième 7 huitième 8
        neuvième 9 dixième 10 onzième 11 douzième 12 quinzième 15 seizième 16 vingtième 20"""
    ),
    "es": _values(
        """cero 0 un 1 uno 1 una 1 dos 2 tres 3 cuatro 4 cinco 5 seis 6 siete 7 ocho 8 nueve 9 diez
        10 once 11 doce 12 trece 13 catorce 14 quince 15 dieciséis 16 diecisiete 17 dieciocho 18
        diecinueve 19 veinte 20 veintiuno 21 veintiún 21 veintiuna 21 veintidós 22 veintitrés 23
        veinticuatro 24 veinticinco 25 veintiséis 26 veintisiete 27 veintiocho 28 veintinueve 29
        treinta 30 cuarenta 40 cincuenta 50 sesenta 60 setenta 70 ochenta 80 noventa 90 cien 100
        ciento 100 doscientos 200 doscientas 200 trescientos 300 trescientas 300 cuatrocientos 400
        quinientos 500 seiscientos 600 setecientos 700 ochocientos 800 novecientos 900 mil 1000
        millón 1000000 millones 1000000 docena 12 segundo 2 segunda 2 tercer 3 tercero 3 tercera 3
        cuarto 4 cuarta 4 quinto 5 quinta 5 sexto 6 sexta 6 séptimo 7 séptima 7 octavo 8 octava 8
        noveno 9 novena 9 décimo 10 décima 10"""
    ),
    "it": _values(
        """zero 0 un 1 uno 1 una 1 due 2 tre 3 quattro 4 cinque 5 sei 6 sette 7 otto 8 nove 9 dieci
        10 undici 11 dodici 12 tredici 13 quattordici 14 quindici 15 sedici 16 diciassette 17
        diciotto 18 diciannove 19 venti 20 trenta 30 quaranta 40 cinquanta 50 sessanta 60 settanta
        70 ottanta 80 novanta 90 cento 100 mille 1000 mila 1000 milione 1000000 milioni 1000000
        miliardo 1000000000 miliardi 1000000000 secondo 2 seconda 2 terzo 3 terza 3 quarto 4 quarta
        4 quinto 5 quinta 5 decimo 10 decima 10"""
    ),
    "pt": _values(
        """zero 0 um 1 uma 1 dois 2 duas 2 três 3 quatro 4 cinco 5 seis 6 sete 7 oito 8 nove 9 dez
        10 onze 11 doze 12 treze 13 catorze 14 quatorze 14 quinze 15 dezesseis 16 dezasseis 16
        dezessete 17 dezassete 17 dezoito 18 dezenove 19 dezanove 19 vinte 20 trinta 30 quarenta 40
        cinquenta 50 sessenta 60 setenta 70 oitenta 80 noventa 90 cem 100 cento 100 duzentos 200
        duzentas 200 trezentos 300 trezentas 300 quatrocentos 400 quinhentos 500 seiscentos 600
        setecentos 700 oitocentos 800 novecentos 900 mil 1000 milhão 1000000 milhões 1000000 bilhão
        1000000000 bilhões 1000000000 segundo 2 segunda 2 terceiro 3 terceira 3 quarto 4 quarta 4
        quinto 5 quinta 5 décimo 10 décima 10"""
    ),
    "nl": _values(
        """nul 0 een 1 twee 2 drie 3 vier 4 vijf 5 zes 6 zeven 7 acht 8 negen 9 tien 10 elf 11
        twaalf 12 dertien 13 veertien 14 vijftien 15 zestien 16 zeventien 17 achttien 18 negentien
        19 twintig 20 dertig 30 veertig 40 vijftig 50 zestig 60 zeventig 70 tachtig 80 negentig 90
        miljoen 1000000 miljard 1000000000 tweede 2 derde 3 vierde 4 vijfde 5 zesde 6 zevende 7
        achtste 8 negende 9 tiende 10"""
    ),
    "ru": _values(
        """ноль 0 один 1 одна 1 одно 1 два 2 две 2 двух 2 двумя 2 двум 2 три 3 трёх 3 трех 3 четыре
        4 четырёх 4 четырех 4 пять 5 пяти 5 шесть 6 шести 6 семь 7 семи 7 восемь 8 восьми 8 девять
        9 девяти 9 десять 10 десяти 10 одиннадцать 11 двенадцать 12 тринадцать 13 четырнадцать 14
        пятнадцать 15 шестнадцать 16 семнадцать 17 восемнадцать 18 девятнадцать 19 двадцать 20
        тридцать 30 сорок 40 пятьдесят 50 шестьдесят 60 семьдесят 70 восемьдесят 80 девяносто 90
        сто 100 двести 200 триста 300 четыреста 400 пятьсот 500 тысяча 1000 тысячи 1000 тысяч 1000
        миллион 1000000 миллиона 1000000 миллионов 1000000 миллиард 1000000000 миллиарда 1000000000
        миллиардов 1000000000 второй 2 вторая 2 третий 3 третья 3 четвёртый 4 пятый 5 шестой 6
        седьмой 7 восьмой 8 девятый 9 десятый 10"""
    ),
    "pl": _values(
        """zero 0 jeden 1 jedna 1 jedno 1 dwa 2 dwie 2 dwóch 2 dwoje 2 trzy 3 trzech 3 cztery 4
        czterech 4 pięć 5 pięciu 5 sześć 6 sześciu 6 siedem 7 siedmiu 7 osiem 8 ośmiu 8 dziewięć 9
        dziewięciu 9 dziesięć 10 dziesięciu 10 jedenaście 11 dwanaście 12 trzynaście 13 czternaście
        14 piętnaście 15 szesnaście 16 siedemnaście 17 osiemnaście 18 dziewiętnaście 19 dwadzieścia
        20 trzydzieści 30 czterdzieści 40 pięćdziesiąt 50 sto 100 dwieście 200 trzysta 300 tysiąc
        1000 tysiące 1000 tysięcy 1000 milion 1000000 miliony 1000000 milionów 1000000 miliard
        1000000000 drugi 2 druga 2 trzeci 3 trzecia 3"""
    ),
    "sv": _values(
        """noll 0 två 2 tre 3 fyra 4 fem 5 sex 6 sju 7 åtta 8 nio 9 tio 10 elva 11 tolv 12 tretton
        13 fjorton 14 femton 15 sexton 16 sjutton 17 arton 18 nitton 19 tjugo 20 trettio 30 fyrtio
        40 femtio 50 sextio 60 sjuttio 70 åttio 80 nittio 90 hundra 100 tusen 1000 miljon 1000000
        miljoner 1000000 andra 2 tredje 3"""
    ),
    "da": _values(
        """nul 0 to 2 tre 3 fire 4 fem 5 seks 6 syv 7 otte 8 ni 9 ti 10 elleve 11 tolv 12 tretten
        13 fjorten 14 femten 15 seksten 16 sytten 17 atten 18 nitten 19 tyve 20 tredive 30 fyrre 40
        halvtreds 50 tres 60 halvfjerds 70 firs 80 halvfems 90 hundrede 100 tusind 1000 million
        1000000 millioner 1000000 anden 2 tredje 3"""
    ),
    "no": _values(
        """null 0 to 2 tre 3 fire 4 fem 5 seks 6 sju 7 syv 7 åtte 8 ni 9 ti 10 elleve 11 tolv 12
        tretten 13 fjorten 14 femten 15 seksten 16 sytten 17 atten 18 nitten 19 tjue 20 tretti 30
        førti 40 femti 50 seksti 60 sytti 70 åtti 80 nitti 90 hundre 100 tusen 1000 million 1000000
        millioner 1000000 andre 2 tredje 3"""
    ),
    "cs": _values(
        """nula 0 dva 2 dvě 2 dvou 2 tři 3 tří 3 čtyři 4 pět 5 pěti 5 šest 6 sedm 7 osm 8 devět 9
        deset 10 jedenáct 11 dvanáct 12 patnáct 15 dvacet 20 třicet 30 čtyřicet 40 padesát 50 sto
        100 tisíc 1000 milion 1000000 milionů 1000000 druhý 2 druhá 2 třetí 3"""
    ),
    "sk": _values(
        """nula 0 dva 2 dve 2 dvoch 2 tri 3 troch 3 štyri 4 päť 5 piatich 5 šesť 6 sedem 7 osem 8
        deväť 9 desať 10 jedenásť 11 dvanásť 12 dvadsať 20 tridsať 30 sto 100 tisíc 1000 milión
        1000000 miliónov 1000000 druhý 2 druhá 2 tretí 3 tretia 3"""
    ),
    "bg": _values(
        """нула 0 два 2 две 2 двама 2 три 3 трима 3 четири 4 пет 5 шест 6 седем 7 осем 8 девет 9
        десет 10 единадесет 11 дванадесет 12 двадесет 20 тридесет 30 сто 100 хиляда 1000 хиляди
        1000 милион 1000000 милиона 1000000 втори 2 втора 2 трети 3 трета 3"""
    ),
    "uk": _values(
        """нуль 0 два 2 дві 2 двох 2 три 3 трьох 3 чотири 4 чотирьох 4 п'ять 5 шість 6 сім 7 вісім
        8 дев'ять 9 десять 10 одинадцять 11 дванадцять 12 двадцять 20 тридцять 30 сорок 40 сто 100
        тисяча 1000 тисячі 1000 тисяч 1000 мільйон 1000000 мільйонів 1000000 другий 2 третій 3"""
    ),
    "el": _values(
        """μηδέν 0 δύο 2 δυο 2 τρεις 3 τρία 3 τέσσερις 4 τέσσερα 4 πέντε 5 έξι 6 επτά 7 εφτά 7 οκτώ
        8 οχτώ 8 εννέα 9 εννιά 9 δέκα 10 έντεκα 11 δώδεκα 12 είκοσι 20 τριάντα 30 σαράντα 40
        πενήντα 50 εκατό 100 χίλια 1000 χίλιες 1000 εκατομμύριο 1000000 εκατομμύρια 1000000
        δεύτερος 2 δεύτερη 2 δεύτερο 2 τρίτος 3 τρίτη 3 τρίτο 3"""
    ),
    "hi": _values(
        """शून्य 0 दो 2 तीन 3 चार 4 पांच 5 पाँच 5 छह 6 छः 6 सात 7 आठ 8 नौ 9 दस 10 ग्यारह 11 बारह 12
        बीस 20 तीस 30 चालीस 40 पचास 50 सौ 100 हज़ार 1000 हजार 1000 लाख 100000 करोड़ 10000000 दूसरा
        2 दूसरी 2 तीसरा 3 तीसरी 3"""
    ),
    "mr": _values(
        """शून्य 0 दोन 2 तीन 3 चार 4 पाच 5 सहा 6 सात 7 आठ 8 नऊ 9 दहा 10 वीस 20 शंभर 100 हजार 1000
        लाख 100000 दुसरा 2 दुसरी 2 तिसरा 3 तिसरी 3"""
    ),
    "ur": _values(
        """صفر 0 دو 2 تین 3 چار 4 پانچ 5 چھ 6 سات 7 آٹھ 8 نو 9 دس 10 بیس 20 تیس 30 پچاس 50 سو 100
        ہزار 1000 لاکھ 100000 دوسرا 2 دوسری 2 تیسرا 3 تیسری 3"""
    ),
    "fa": _values(
        """صفر 0 دو 2 سه 3 چهار 4 پنج 5 شش 6 هفت 7 هشت 8 نه 9 ده 10 بیست 20 سی 30 چهل 40 پنجاه 50
        صد 100 هزار 1000 میلیون 1000000 دوم 2 سوم 3"""
    ),
    "ar": _values(
        """صفر 0 اثنان 2 اثنين 2 اثنتان 2 اثنتين 2 ثلاث 3 ثلاثة 3 أربع 4 أربعة 4 خمس 5 خمسة 5 ست 6
        ستة 6 سبع 7 سبعة 7 ثمان 8 ثماني 8 ثمانية 8 تسع 9 تسعة 9 عشر 10 عشرة 10 عشرون 20 عشرين 20
        ثلاثون 30 ثلاثين 30 مئة 100 مائة 100 ألف 1000 آلاف 1000 مليون 1000000 ملايين 1000000 الثاني
        2 الثانية 2 الثالث 3 الثالثة 3"""
    ),
    "hy": _values(
        """զրո 0 երկու 2 երեք 3 չորս 4 հինգ 5 վեց 6 յոթ 7 ութ 8 ինը 9 տասը 10 քսան 20 երեսուն 30
        հարյուր 100 հազար 1000 միլիոն 1000000 երկրորդ 2 երրորդ 3"""
    ),
    "kk": _values(
        """нөл 0 екі 2 үш 3 төрт 4 бес 5 алты 6 жеті 7 сегіз 8 тоғыз 9 он 10 жиырма 20 отыз 30
        қырық 40 елу 50 жүз 100 мың 1000 миллион 1000000 екінші 2 үшінші 3"""
    ),
}

_JOINING: Mapping[str, frozenset[str]] = {
    "en": frozenset({"and"}),
    "fr": frozenset({"et"}),
    "es": frozenset({"y"}),
    "pt": frozenset({"e"}),
    "it": frozenset({"e"}),
}
"""Words that join the parts of a number, as in *two hundred and five*."""

_FUSED: Mapping[str, tuple[str, str, str]] = {
    "de": ("und", "hundert", "tausend"),
    "nl": ("en", "honderd", "duizend"),
    "it": ("", "cento", "mila"),
}
"""In languages that write a number as one word: joint of ones and tens, hundred, thousand."""

_ORDINAL_ENDINGS: Mapping[str, tuple[str, ...]] = {
    "de": ("sten", "ster", "stes", "ste", "ten", "ter", "tes", "te"),
    "nl": ("ste", "de"),
    "fr": ("ième",),
}
_AFTER_DIGITS = word_set("""st nd rd th er ère e ème ième º ª o a de ste й я го ое ή ος""")
"""Endings of ordinals in digits, such as 19th."""

_SMALLEST_SCALE = 100
_WORDS_KEPT = 65536


def digits_value(text: str, language: str | None = None) -> str:
    """Return the canonical form of a number in digits: no grouping, a point, no trailing zeros.

    Args:
        text: a text that `DIGITS` matches.
        language: determines whether the decimal separator is a comma or a point. In any language, a
            separator groups digits if there are several groups of three, or if the last is 000.
    """
    sign = "-" if text[0] in "-−" else ""
    plain = "".join(
        str(unicodedata.decimal(letter)) if letter.isdecimal() else letter
        for letter in text.lstrip("-−+")
    )
    plain = plain.replace("٫", "." if language in _DECIMAL_POINT else ",")
    point = "." if language in _DECIMAL_POINT else ","
    if _GROUPED.fullmatch(plain):
        marks = re.sub(r"\d", "", plain)
        if len(set(marks)) == 1 and (
            len(marks) > 1 or marks != point or (plain.endswith("000") and plain[0] != "0")
        ):
            return sign + re.sub(r"\D", "", plain)
    whole, mark, rest = plain.rpartition(point)
    if mark and rest.isdigit() and (whole.isdigit() or _GROUPED.fullmatch(whole)):
        decimals = rest.rstrip("0")
        return sign + re.sub(r"\D", "", whole) + ("." + decimals if decimals else "")
    return sign + plain


def roman_value(text: str) -> int | None:
    """Return the value of a Roman numeral of two capital letters or more; None for other texts."""
    if not _ROMAN.fullmatch(text):
        return None
    values = [_ROMAN_VALUES[letter] for letter in text]
    following = [*values[1:], 0]
    return sum(
        -value if value < next_ else value for value, next_ in zip(values, following, strict=True)
    )


def numbers_joined(words: Sequence[str], language: str) -> list[str]:
    """Return words with every number in words, or in digits and a scale, replaced by digits.

    Args:
        words: words in lower case, and numbers as `digits_value` writes them.
        language: code of the language of the words.
    """
    joining = _JOINING.get(language, frozenset())
    result: list[str] = []
    index = 0
    while index < len(words):
        start, total = index, 0.0
        current: float | None = None
        while index < len(words):
            word = words[index]
            value = _value(word, language)
            skipped = 0
            if value is None and current is not None and word in joining and index + 1 < len(words):
                value, skipped = _value(words[index + 1], language), 1
                if value is not None and value >= _SMALLEST_SCALE:
                    value = None
            # Digits combine with a scale, as in 2 million, but not with other numbers.
            digits = index > start and (word[0].isdigit() or words[index - 1][0].isdigit())
            if value is None or (digits and current and value < _SMALLEST_SCALE):
                break
            grown = _grown(total, current, value, language)
            if grown is None:
                break
            total, current = grown
            index += 1 + skipped
        number = None if current is None else float(total + current)
        alone = index <= start + 1
        if number is None or (alone and (number == 1 or words[start][0].isdigit())):
            result.append(words[start])
            index = start + 1
        else:
            result.append(str(int(number)) if number.is_integer() else repr(number))
    return result


def is_ordinal_ending(text: str) -> bool:
    """Return whether a text ends an ordinal number in digits, as th does in 19th."""
    return text in _AFTER_DIGITS


def _grown(
    total: float, current: float | None, value: float, language: str
) -> tuple[float, float] | None:
    """Return a number extended by one word: the completed thousands, and the rest below them.

    Return None if the word begins another number.
    """
    scale = value == 1000 or value >= 100000
    if current is None:
        return (value, 0.0) if scale else (0.0, value)
    if scale:
        if value > total:
            return ((total + current) * value, 0.0) if total + current < value else None
        return (total + current * value, 0.0) if current else None
    if current == 0:
        return (total, value) if total and value < 1000 else None
    if value == 100 and current < 100:
        return (total, current * 100)
    if language == "en" and 10 <= current <= 20 and 10 <= value < 100:
        # A year, such as *nineteen ninety*.
        return (total, current * 100 + value)
    if language == "fr" and value == 20 and current % 100 == 4:
        return (total, current + 76)
    teens = language == "fr" and current % 100 in (60, 80) and value < 20
    ones = value < 10 and current % 10 == 0 and current % 100 >= 20
    rest = value < 100 and current >= 100 and current % 100 == 0
    return (total, current + value) if teens or ones or rest else None


def _value(word: str, language: str) -> float | None:
    if word[0].isdigit():
        return float(word) if re.fullmatch(r"\d+(?:\.\d+)?", word) else None
    return _word_value(word, language)


@lru_cache(_WORDS_KEPT)
def _word_value(word: str, language: str) -> int | None:
    """Return the value of one word; None if it is not a number."""
    listed = _WORDS.get(language, {})
    if word in listed:
        return listed[word]
    if language in _FUSED and (value := _fused_value(word, language)) is not None:
        return value
    for ending in _ORDINAL_ENDINGS.get(language, ()):
        stem = word.removesuffix(ending)
        if stem != word:
            value = listed.get(stem) or _fused_value(stem, language)
            if value is not None and value > 1:
                return value
    return None


def _fused_value(word: str, language: str) -> int | None:
    """Return the value of a number written as one word, such as *neunzehnhundertzwölf*."""
    if language not in _FUSED:
        return None
    joint, hundred, thousand = _FUSED[language]
    listed = _WORDS[language]
    if word in listed:
        return listed[word]
    for scale, factor in ((thousand, 1000), (hundred, 100)):
        before, separator, after = word.partition(scale)
        if separator:
            head = 1 if not before else _fused_value(before, language)
            tail = 0 if not after else _fused_value(after.removeprefix(joint), language)
            return None if head is None or tail is None else head * factor + tail
    if joint:
        for tens, value in listed.items():
            ones = word.removesuffix(joint + tens)
            if 20 <= value < 100 and ones != word and 0 < listed.get(ones.rstrip("ë"), 0) < 10:
                return listed[ones.rstrip("ë")] + value
        return None
    for tens, value in listed.items():
        if 20 <= value < 100 and word.startswith(tens[:-1]):
            whole, elided = word.removeprefix(tens), word.removeprefix(tens[:-1])
            last = listed.get(whole, listed.get(elided, 0))
            if 0 < last < 10:
                return value + last
    return None
