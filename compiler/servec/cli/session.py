"""What the verbs share: the project, a compilation, findings shown, an exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from servec.diag import codes
from servec.diag.findings import Findings, Severity
from servec.pipeline import Compiled, Observer, run
from servec.source.files import Files, Folder, find_project

F = TypeVar("F", bound=Callable[..., Any])


def project_options(function: F) -> F:
    """The options of every verb that compiles."""
    for option in (
        click.option(
            "-C",
            "--project",
            default=".",
            type=click.Path(exists=True, file_okay=False),
            help="Folder to look for a project in.",
        ),
        click.option(
            "--set", "sets", multiple=True, metavar="MODEL.KNOB=VALUE", help="Set a parameter."
        ),
        click.option("--strict", is_flag=True, help="An unknown engine version is an error."),
        click.option(
            "--format",
            "style",
            type=click.Choice(("text", "json")),
            default="text",
            help="How findings are shown.",
        ),
    ):
        function = option(function)
    return function


class Session:
    """One run of a verb over one project."""

    def __init__(self, project: str, sets: tuple[str, ...], strict: bool, style: str) -> None:
        self.style = style
        self.sets = sets
        self.strict = strict
        self.findings = Findings(strict=strict)
        self.root = find_project(Path(project))
        self.files: Files | None = None
        if self.root is None:
            self.findings.add(
                codes.NO_PROJECT, None, folder=Path(project).resolve(), advice=_advice(project)
            )
        else:
            self.files = Files(Folder(self.root), self.findings)

    def compile(self, observe: Observer = lambda name, ir: None) -> Compiled | None:
        """Compile the project; None with the findings shown where it has errors."""
        done = self.compile_anyway(observe)
        return None if self.findings.errors else done

    def compile_anyway(self, observe: Observer = lambda name, ir: None) -> Compiled | None:
        """Compile the project as far as it goes."""
        if self.files is None:
            return None
        return run(self.files, self.findings, sets=self.sets, strict=self.strict, observe=observe)

    def close(self, least: Severity = Severity.NOTE) -> int:
        """Show the findings from a gravity on, and give the exit code."""
        found = tuple(item for item in self.findings.show() if item.severity >= least)
        if self.style == "json":
            from servec.diag.render import render_json

            click.echo(render_json(found), nl=False)
        elif found:
            from servec.diag.render import render_text, summary

            line_of = self.files.line if self.files else lambda file, number: None
            colour = sys.stderr is not None and sys.stderr.isatty()
            click.echo(render_text(found, line_of, colour=colour), err=True)
            click.echo(f"servec: {summary(found)}", err=True)
        return 1 if self.findings.errors else 0

    def say(self, words: str) -> None:
        """People's words: on stderr, and not where a machine reads."""
        if self.style == "text":
            click.echo(f"servec: {words}", err=True)


def _advice(project: str) -> str:
    if Path(project, "servec.yml").exists():
        return "servec.yml is here: call it servec.yaml"
    return "go to a project's folder, or write a servec.yaml there"
