"""The report of a run: a folder of HTML pages that need neither a server nor a network.

from experiments import report
report("results/compare")
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType


class CallableRoom(ModuleType):
    """This package as a function: the front door's `report` bears its name.

    Python binds a package that is imported to that name in its parent, in place of whatever stood
    there, so that the two can only be one object.
    """

    def __call__(
        self,
        folder: str | os.PathLike[str],
        out: str | os.PathLike[str] | None = None,
        *,
        data: Mapping[str, str | os.PathLike[str]] | None = None,
        responses: Iterable[str] = (),
        pages: int | None = None,
        only: Iterable[str] = (),
    ) -> Path:
        """Make the HTML report of a finished run, as the command `factormodels report` does.

        Args:
            folder: the folder of the run's results, or a file of assessed responses.
            out: the folder of the report; FOLDER/report if not given, or FILE-report.
            data: where files are now that the run read its data from, by name of the dataset.
            responses: ids of the responses that have a page; none: the first ones of every dataset.
            pages: how many those are; as the study says if not given.
            only: which cells are shown, each a text such as "backend=exact".

        Returns:
            The first page, which leads to the others.

        Raises:
            InputError: if the folder holds no finished run, its data are absent or not the same, or
                the report cannot be written.
        """
        from experiments.report.assessed import make_assessed_report
        from experiments.report.from_run_folder import make_report
        from factormodels.errors import options_as_arguments

        files = [f"{name}={os.fspath(path)}" for name, path in (data or {}).items()]
        target = None if out is None else Path(out)
        with options_as_arguments():
            if Path(folder).is_file():
                return make_assessed_report(
                    Path(folder), target, chosen=tuple(responses), pages=pages
                )[0]
            return make_report(
                Path(folder),
                target,
                files=files,
                only=only,
                chosen=tuple(responses),
                pages=pages,
            )[0]


sys.modules[__name__].__class__ = CallableRoom
