"""References to Python objects, found without comparing each with every object there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sphinx.domains.python import PythonDomain

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def connect(app: Sphinx) -> None:
    """Have references looked up here."""
    app.add_domain(QuickPythonDomain, override=True)


class QuickPythonDomain(PythonDomain):
    """Sphinx's domain, which looks only for names that end as that of an object of ours does.

    Most references of a signature are to `str`, `float` and what other libraries define; for each
    of them Sphinx compares the ends of all names, of which there are more than ten thousand.
    """

    _ends: frozenset[str] = frozenset()
    _counted = 0

    def find_obj(self, env: Any, modname: Any, classname: Any, name: str, *rest: Any) -> Any:
        """What Sphinx finds: nothing where no object's name has the last part of `name`."""
        if self._counted != len(self.objects):
            self._counted = len(self.objects)
            self._ends = frozenset(full.rpartition(".")[2] for full in self.objects)
        if name.removesuffix("()").rpartition(".")[2] not in self._ends:
            return []
        return super().find_obj(env, modname, classname, name, *rest)
