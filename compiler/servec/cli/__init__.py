"""The command line: one module a verb, imported when the verb is called.

Exit codes: 0 fine, 1 findings or a difference, 2 wrong usage, 3 a defect of servec, 130 stopped.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
from collections.abc import Sequence

import click

VERBS = {
    "build": "Compile the project and write what differs.",
    "check": "Compile and hold the output folder against it; write nothing.",
    "explain": "Say where a value comes from, or what a finding means.",
    "blame": "Show a model's whole configuration with the source of each line.",
    "catalog": "What released packages of an engine accept.",
    "lint": "Check engine command lines in any files.",
    "verify": "Check Kubernetes objects as the API server would.",
    "upgrade": "Show what a newer version of an engine changes.",
    "launch": "Say how one shard is started.",
    "dump": "Print the compiler's state after a pass.",
    "capabilities": "Show what an engine can do at a version.",
    "schema": "Print the JSON Schema of a kind of source file.",
}
DEFECT = 3
INTERRUPTED = 130


class _Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        command = importlib.import_module(f"servec.cli.{name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            from servec.diag.suggest import nearest

            near = nearest(args[0], VERBS)
            hint = f" Did you mean `{near}`?" if near else ""
            ctx.fail(f"No such command `{args[0]}`.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="servec", message="servec %(version)s")
def servec() -> None:
    """The compiler for LLM serving: recipes, manifests and specs in; wrappers, units and
    manifests out, byte for byte the same every time."""


def run(arguments: Sequence[str]) -> int:
    """Run a command line and give its exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # what its encoding lacks is shown as an escape
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = servec.main(list(arguments), prog_name="servec", standalone_mode=False)
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone: what is still buffered must not fail a second time at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _cannot_go_on(error)
    except Exception:
        return _defect()
    return code if isinstance(code, int) else 0


def _cannot_go_on(error: OSError) -> int:
    """The system refuses what no source is to blame for: a full disk, a folder that is gone."""
    with contextlib.suppress(OSError):
        click.echo(f"servec: {error.strerror or error}", err=True)
    # What is still buffered cannot be written either: it must not fail a second time at exit.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nowhere, number)
    return 1


def _defect() -> int:
    import traceback

    from servec import __version__

    traceback.print_exc()
    words = "this is a defect of servec, not of your sources; please report it with the lines above"
    click.echo(f"servec {__version__}: {words}", err=True)
    return DEFECT
