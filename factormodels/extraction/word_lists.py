"""English function words, negations and number words."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP_WORDS = _words(
    """a about above after again all also although am among an and any are as at be became because
    become becomes been before being below between both but by came can could did do does doing
    down during each either few first for from further had has have having he her here hers herself
    him himself his how i if in into is it its itself just known like made make many may me might
    more most much must my of off often on once one only or other others our out over own part per
    same several shall she should since so some still such than that the their them themselves then
    there these they this those through to together too under until up upon us very was we well
    were what when where which while who whom whose why will with within would you your"""
)
"""Words without content, except for negations, which are counted separately."""

NEGATIONS = _words(
    """no not never none neither nor nobody nothing nowhere cannot without hardly false falsely myth
    untrue incorrect incorrectly wrong wrongly deny denies denied contrary fails failed
    refused"""
)
"""Words that negate a statement, as does the ending n't."""

NUMBER_WORDS: Mapping[str, str] = MappingProxyType(
    {
        **{"zero": "0", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6"},
        **{"seven": "7", "eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12"},
        **{"thirteen": "13", "fourteen": "14", "fifteen": "15", "sixteen": "16"},
        **{"seventeen": "17", "eighteen": "18", "nineteen": "19", "twenty": "20"},
    }
)
"""Numbers in words, without *one*, which is more often a pronoun."""
