"""US dollars for relations: what answers really took decides how many more pairs are asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from factormodels.extraction.language_model.accounting import charged_account
from factormodels.extraction.relation_models.prompted import STAGE

_ROUNDING = 1e-12
"""US dollars by which a sum of prices may miss the number that it stands for."""


@dataclass
class Purse:
    """An amount for the relations of all responses, shared out among them.

    Before every batch the dearest pair so far says how many more fit: of a response into its share,
    rounded to whole pairs but to one at least, and of all into the amount, which is never rounded.
    Batches take at most half of what is left, the last pairs go one at a time, and so does the
    first, whose price is not known. So answers may be twice as dear as any before, and still the
    amount is exceeded by less than one pair, as that of `Budget` by less than one call.

    Answers from the cache count with what they took when they were asked for: an amount is that of
    an assessment, however often it is begun. A response's batches follow from its own answers
    alone, whatever other threads ask, until the amount is used up.

    Attributes:
        amount: US dollars.
        shares: those of each response, by its id.
        expected: of a call, where the price of its answer is not known.
    """

    amount: float
    shares: Mapping[str, float]
    expected: float
    _took: dict[str, float] = field(default_factory=dict)
    _dearest: dict[str, float] = field(default_factory=dict)
    _under_way: list[float] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition, repr=False)

    @property
    def took(self) -> float:
        """US dollars that answers took so far."""
        # The order of a sum of floats shows.
        return sum(sorted(self._took.values()))

    def note(self, response: str, cost: float) -> None:
        """Count what a response took that an earlier run had finished."""
        self._took[response] = cost

    @contextmanager
    def batch(self, response: str, most: int) -> Iterator[int]:
        """How many pairs may be asked in the block, at most `most`; 0 once nothing more fits.

        What the account takes in the block to which the thread's answers are charged is noted.
        """
        count, reserved = self._admitted(response, most)
        if not count:
            yield 0
            return
        account = charged_account()
        before = 0 if account is None else len(account.costs(STAGE))
        try:
            yield count
        finally:
            known = [None] * count if account is None else account.costs(STAGE)[before:]
            with self._changed:
                self._under_way.remove(reserved)
                costs = [self.expected if cost is None else cost for cost in known]
                self._took[response] = self._took.get(response, 0.0) + sum(sorted(costs))
                # Windows and samples make several calls of a pair.
                dearest = max(costs, default=0.0) * max(1.0, len(costs) / count)
                self._dearest[response] = max(dearest, self._dearest.get(response, 0.0))
                self._changed.notify_all()

    def _admitted(self, response: str, most: int) -> tuple[int, float]:
        """How many pairs may be asked, and the US dollars set aside for them."""
        own, share = self._dearest.get(response), self.shares.get(response, 0.0)
        left = share - self._took.get(response, 0.0)
        count = min(most, _batch(left + (own or 0.0) / 2, own)) if share else 0
        with self._changed:
            while count:
                dearest = max(self._dearest.values(), default=0.0)
                left = self.amount - self.took
                reserved = count * dearest
                known = dearest > 0.0
                if known and 2 * (sum(self._under_way) + reserved) <= left:
                    break
                if not self._under_way:
                    count = min(count, _batch(left, dearest or None))
                    reserved = count * dearest
                    break
                self._changed.wait()
            if count:
                self._under_way.append(reserved)
        return count, reserved if count else 0.0


def _batch(left: float, dearest: float | None) -> int:
    """Pairs that may go side by side: half of those that fit, and the last one alone."""
    if not dearest:
        return int(left > 0.0)
    fit = int((left + _ROUNDING) / dearest)
    return min(fit, max(1, fit // 2))
