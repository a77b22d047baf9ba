"""Language of a text, guessed from its script, its letters and its function words.

The language determines sentence boundaries and the words that negate a claim. The guess uses word
lists only and needs no model. It is None if the evidence is weak: a text in an unlisted language
has few of the words below, or words of several languages.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from factormodels.errors import InputError

_READ = 20_000
"""Number of characters that are read from a text."""

_LEAST_VOTES = 1.0
"""Least number of votes. A function word of one language is one vote; of n languages, 1/n."""

_LEAST_SHARE = 0.2
"""Least share of words that identify a language; one or two words in a text are no evidence."""

_LEAST_MARGIN = 1.3
"""Least ratio of the votes of a language to those of the next."""


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text, separated by white space and case-folded.

    Texts are folded before their words are looked up, since `str.casefold` writes ß as ss and ς as
    σ.
    """
    return frozenset(text.casefold().split())


def _lists(**words: str) -> Mapping[str, frozenset[str]]:
    return MappingProxyType({code: word_set(text) for code, text in words.items()})


FUNCTION_WORDS: Mapping[str, frozenset[str]] = _lists(
    en="""the a an and or but of to in on at by for from with is are was were be been has had have
    it he she they we you i his her their its this that these those who which what when where not
    did does as also then there after before if while because however no nobody most many some""",
    de="""der die das den dem des ein eine einen einem einer eines und oder aber von zu im in am
    auf bei für aus mit ist sind war waren wurde wurden wird werden hat hatte haben es er sie wir
    ihr sein seine ihre dies dieser diese nicht kein keine auch dann dort danach nach vor wenn weil
    als man sich über zum zur wer was wie niemand heute""",
    fr="""le la les un une des du de et ou mais à au aux en dans sur par pour avec est sont était
    étaient fut furent a ont avait il elle ils elles on nous vous son sa ses leur leurs ce cette
    ces cela qui que ne pas aussi puis après avant si quand où je personne""",
    es="""el la los las un una unos unas de del y o pero a al en por para con es son era eran fue
    fueron ha había tiene él ella ellos ellas su sus este esta estos esto que quien cuando no nunca
    también luego después antes si como se lo nadie está sin más ni""",
    it="""il lo la i gli le un uno una di del della dei delle dello degli e o ma a al alla in nel
    nella su per con da dal è sono era erano fu furono ha aveva egli lui lei essi loro suo sua suoi
    questo questa che chi quando non mai anche poi dopo prima se si nessuno ora""",
    pt="""o a os as um uma de do da dos das e ou mas em no na nos nas por pelo pela para com é são
    era eram foi foram tem tinha ele ela eles elas seu sua seus este esta isto que quem quando não
    nunca também depois antes se como ao à ninguém está""",
    nl="""de het een en of maar van te in op aan bij voor uit met is zijn was waren werd werden
    wordt heeft had hebben hij zij ze wij hun haar zijn dit dat deze die niet geen ook dan daar na
    als wie wat niemand er naar door""",
    pl="""i w z na do od o po za przez dla jest są był była było byli nie to ten ta tego tej on ona
    ono oni jego jej ich się który która które że ale lub także oraz po przed gdy kiedy jak nikt
    został została roku u""",
    cs="""a v na z do od o po za pro s je jsou byl byla bylo byli se si to ten ta toho on ona ono
    jeho její jejich který která které že ale nebo také před když jak nikdo ve ze roku u""",
    sk="""a v na z do od o po za pre s je sú bol bola bolo boli sa si to ten tá toho on ona ono
    jeho jej ich ktorý ktorá ktoré že ale alebo tiež pred keď ako nikto vo zo roku u""",
    da="""en et den det de og eller men af til i på ved for fra med er var blev bliver har havde
    han hun vi deres hans hendes dette denne som der ikke ingen også efter før når hvor hvem
    at""",
    no="""en et ei den det de og eller men av til i på ved for fra med er var ble blir har hadde
    han hun vi deres hans hennes dette denne som ikke ingen også etter før når hvor hvem at""",
    sv="""en ett den det de och eller men av till i på vid för från med är var blev blir har hade
    han hon vi deras hans hennes detta denna som inte ingen också efter före när där vem att""",
    fi="""ja tai mutta on oli ovat olivat hän he se ne ei eivät joka jotka että kun myös jälkeen
    ennen sekä tämä""",
    hu="""a az egy és vagy de volt voltak van hogy nem is meg ő ők ez ezt aki ami mint után előtt
    született""",
    ro="""și în din pe la cu de un o este sunt era a fost au lui ei nu care că mai după sau dar ea
    el pentru al ale""",
    ca="""el la els les un una i o de del dels en amb per és són era va van ser no que qui també
    després seu seva aquest aquesta als""",
    tr="""ve bir bu o da de için ile olarak oldu değil çok daha sonra önce gibi ne kadar ama veya
    tarafından""",
    id="""yang dan di ke dari untuk dengan pada adalah tidak ini itu oleh dalam sebagai ia dia
    mereka lahir""",
    vi="""và là của có không một được trong cho với các người này đã ông bà""",
    hr="""i u na se je su bio bila bilo bili od do za s sa koji koja koje da ne nije on ona oni
    njegov nakon prije ili ali kao""",
    ru="""и в во на с со из к по у о от до для за не что как он она оно они его её ее их был была
    было были это этот эта который которая также после до перед или но никто кто где потом там же
    бы мы нет""",
    uk="""і й в у на з із до по від для за не що як він вона воно вони його її їх був була було
    були це цей ця який яка також після перед або але ніхто хто де та""",
    be="""і ў на з да па ад для за не што як ён яна яно яны яго яе іх быў была было былі гэта які
    таксама пасля або але""",
    bg="""и в във на с със от до за не че как той тя то те му е са беше бяха бил била било това
    този тази който която също след преди или но никой кой къде по се през година""",
    sr="""и у на са из од до за не да је су био била било били он она они његов који која које
    такође након пре или али као се""",
    mk="""и во на со од до за не дека како тој таа тоа тие е се беше беа бил била овој кој која
    исто по пред или но""",
    kk="""және мен бен пен бұл ол олар емес да де үшін болды болған еді жылы бір туралы кейін дейін
    оның""",
    hi="""है हैं था थी थे और या का की के को में से पर ने वह वे यह ये नहीं एक भी हुआ हुई गया गई कौन
    उसने उसका उसकी उसके तक बाद पहले""",
    mr="""आहे आहेत होता होती होते आणि किंवा चा ची चे ला मध्ये तो ती ते हा ही हे नाही एक पण झाला
    झाली त्याने तिने त्याचा नंतर पूर्वी""",
    ne="""छ छन् थियो थिए र वा को का की लाई मा बाट यो त्यो उनी उनले होइन एक पनि भयो गरे""",
    ar="""في من إلى على عن مع هو هي هم كان كانت كانوا لا لم لن ليس ليست هذا هذه التي الذي أن إن ثم
    أو بعد قبل عام كما قد ما لذلك""",
    fa="""در از به با که را این آن او و است بود بودند شد شده نیست نبود هر یک برای تا پس پیش سال هم
    می""",
    ur="""میں سے کا کی کے کو پر نے ہے ہیں تھا تھی تھے اور یا وہ یہ نہیں ایک بھی ہوا ہوئی گیا بعد
    پہلے تک""",
)
"""Frequent words by language, mostly function words. Languages without claim comparison are listed
too, so that their text is not mistaken for a related language."""

_LETTERS: Mapping[str, str] = MappingProxyType(
    {
        **{"de": "ß", "es": "ñ¿¡", "pt": "ãõ", "fr": "œêîûëï", "pl": "łąęśźżńć", "cs": "ěřů"},
        **{"sk": "ľĺŕ", "hu": "őű", "tr": "ğış", "ro": "țșăţş", "vi": "đơưạảấầậế", "ca": "·"},
        **{"ru": "ыэё", "uk": "їєґ", "be": "ў", "sr": "ђћљњџј", "mk": "ѓќѕ", "kk": "әғқңөұүһ"},
        **{"ar": "ةىإأ", "fa": "پچژگ", "ur": "ٹڈڑںےہھ", "sv": "äå", "da": "æø", "no": "æø"},
        **{"bg": "ъ"},
    }
)
"""Letters that few other listed languages use; each word with such a letter is a vote."""

_OF_SCRIPT: Mapping[str, str] = MappingProxyType(
    {
        **{"GREEK": "el", "ARMENIAN": "hy", "HIRAGANA": "ja", "KATAKANA": "ja", "HANGUL": "ko"},
        **{"CJK": "zh", "HEBREW": "he", "THAI": "th", "GEORGIAN": "ka", "BENGALI": "bn"},
        **{"TAMIL": "ta", "TELUGU": "te", "ETHIOPIC": "am", "MYANMAR": "my", "GUJARATI": "gu"},
        **{"GURMUKHI": "pa", "KANNADA": "kn", "MALAYALAM": "ml", "KHMER": "km", "LAO": "lo"},
    }
)
"""Language by script, for scripts that a single listed language uses."""

_MOST_USED: Mapping[str, str] = MappingProxyType(
    {"CYRILLIC": "ru", "DEVANAGARI": "hi", "ARABIC": "ar"}
)

_MARKS = (
    r"\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0900-\u0963\u0971-\u0dff\u0e31-\u0e4e\u0eb1-\u0ebd"
    r"\u0f18-\u0fbc\u102b-\u103e\u17b4-\u17d3\u200c\u200d"
)
WORD = rf"[^\W\d_](?:[^\W\d_]|[{_MARKS}])*"
"""Pattern of a word: letters, and combining vowel signs and accents, which ``\\w`` does not
match."""

_WORD = re.compile(WORD)
_ADDRESS = re.compile(r"\S*(?:://|www\.|@)\S*")
_CODE = re.compile(r"[a-z]{2,3}(?:-[a-z0-9]{2,8})*", re.IGNORECASE)


def is_language_code(text: str) -> bool:
    """Return whether a text has the form of a language code, such as de or pt-BR."""
    return _CODE.fullmatch(text.strip()) is not None


def checked_language(code: str) -> str:
    """Return the code of a language in lower case and without its region: ``de`` for ``de-AT``.

    Raises:
        InputError: if the text does not have the form of a language code.
    """
    if not is_language_code(code):
        raise InputError(
            f"{code!r} is not a language code; give two or three letters, such as en, de or zh"
        )
    return code.strip().split("-")[0].lower()


def detected_language(text: str) -> str | None:
    """Return the code of the language of a text; None if it cannot be determined.

    Args:
        text: the text; several sentences give a more reliable result than one.
    """
    plain = _ADDRESS.sub(" ", text)
    script = _script(plain)
    return _OF_SCRIPT[script] if script in _OF_SCRIPT else _by_words(plain)


def usual_language(text: str) -> str:
    """Return the language of a text or, if undetermined, the most common language of its script.

    Use it for rules that the languages of a script share. Text without letters is taken as English.
    """
    script = _script(_ADDRESS.sub(" ", text))
    return detected_language(text) or _MOST_USED.get(script, "en")


def _script(text: str) -> str:
    """Return the Unicode name of the script of most letters; empty if there are none."""
    scripts = Counter(
        unicodedata.name(letter, " ").split(" ")[0] for letter in text if letter.isalpha()
    )
    kana = scripts["HIRAGANA"] + scripts["KATAKANA"]
    if kana and kana + scripts["CJK"] > sum(scripts.values()) / 2:
        return "HIRAGANA"
    return max(scripts, key=lambda script: scripts[script], default="")


def _by_words(text: str) -> str | None:
    words = _WORD.findall(unicodedata.normalize("NFC", text[:_READ]).casefold())
    users = _users()
    votes: dict[str, float] = defaultdict(float)
    seen: dict[str, list[str]] = defaultdict(list)
    for word in words:
        codes = users.get(word, ())
        for code in codes:
            votes[code] += 1 / len(codes)
            seen[code].append(word)
        if not word.isascii():
            for code, letters in _LETTERS.items():
                if any(letter in word for letter in letters):
                    votes[code] += 1
                    seen[code].append(word)
    ranked = sorted(votes, key=lambda code: -votes[code])
    if not ranked or votes[ranked[0]] < _LEAST_VOTES:
        return None
    best, second = ranked[0], votes[ranked[1]] if len(ranked) > 1 else 0
    is_clear = len(set(seen[best])) > 1 and len(seen[best]) >= _LEAST_SHARE * len(words)
    return best if is_clear and votes[best] >= _LEAST_MARGIN * second else None


@cache
def _users() -> Mapping[str, tuple[str, ...]]:
    """Return the languages that have each function word."""
    users: dict[str, tuple[str, ...]] = {}
    for code, words in FUNCTION_WORDS.items():
        for word in words:
            users[word] = (*users.get(word, ()), code)
    return users
