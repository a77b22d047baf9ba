"""`factormodels prompts`: the templates that language models are asked with, and a copy to edit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.cli.console import heading, output, plain_table, show_table, show_written

if TYPE_CHECKING:
    from rich.console import Console

    from factormodels.extraction.prompts import PromptTemplate


def command(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Show only this prompt, in full.")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--prompts", metavar="DIR", help="Show the prompts with the changes in this folder."
        ),
    ] = None,
    copy: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write our prompts to this folder, one file each, as a start for your own.",
        ),
    ] = None,
) -> None:
    """List the prompts: what each asks for, and which slots it has.

    To replace prompts, make a folder with a file NAME.yaml for each, and give it to a
    command as `--prompts` or to a study as the key `prompts`. A slot marked * must
    appear in the question; the others may be left out.

    [b]Examples[/b]

      factormodels prompts
      factormodels prompts relation
      factormodels prompts --copy my-prompts
      factormodels prompts --prompts my-prompts
    """
    from factormodels.extraction.prompts import prompt_names
    from factormodels.extraction.prompts.replaced import copy_prompts, read_prompts

    console = output()
    if copy is not None:
        show_written(console, copy_prompts(copy))
        return
    prompts = read_prompts(folder)
    if name is not None:
        _show_prompt(console, prompts[name])
        return
    table = plain_table(["prompt", "version", "hash", "slots"])
    table.add_column("what it asks for", overflow="fold")
    for known in prompt_names():
        prompt = prompts[known]
        slots = " ".join(f"{slot}*" if slot in prompt.needed else slot for slot in prompt.slots)
        yours = " (yours)" if known in prompts.replaced else ""
        row = [f"{known}{yours}", str(prompt.identity.version), prompt.identity.digest[:12], slots]
        table.add_row(*row, prompt.purpose)
    show_table(console, table)


def _show_prompt(console: Console, prompt: PromptTemplate) -> None:
    identity = prompt.identity
    heading(console, f"{identity.name}, version {identity.version}, {identity.digest[:12]}")
    console.print(prompt.purpose, soft_wrap=True)
    table = plain_table(["slot", "needed", "what it holds"])
    for name, meaning in prompt.slots.items():
        table.add_row(name, "yes" if name in prompt.needed else "", meaning)
    show_table(console, table)
    parts = [("system", prompt.system)] if prompt.system else []
    for number, example in enumerate(prompt.examples, 1):
        texts = "\n".join(f"{name}: {text}" for name, text in example.fields.items())
        parts += [(f"example {number}", texts), (f"answer {number}", example.answer)]
    for title, text in [*parts, ("question", prompt.question)]:
        heading(console, title)
        console.print(text, soft_wrap=True, markup=False, highlight=False)
