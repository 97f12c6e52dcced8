"""servec launch: the processes of one shard, as JSON; nothing is started."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import click

from servec.api import InvalidShard, launch_node
from servec.diag.findings import Finding, Findings
from servec.diag.render import LineOf, render_json, render_text, summary
from servec.ir.shard import ShardLaunch
from servec.source.files import Files, Memory

KEYS = re.compile(r"""("[A-Za-z_]*(?:api_key|API_KEY)"\s*:\s*")((?:[^"\\]|\\.)*)""")
"""A key of the API in the text of a shard."""


@click.command("launch")
@click.argument("file", default="-")
@click.option(
    "--engine-version", "version", help="The engine's version; the newest rules unless said."
)
@click.option("--env", "only_env", is_flag=True, help="Print the environment alone, NAME=value.")
@click.option("--inherit", is_flag=True, help="Print the complete environment, of this shell too.")
def command(file: str, version: str | None, only_env: bool, inherit: bool) -> int:
    """Say how one shard is started: commands in order, environment, files.

    FILE is the shard as JSON, or `-` for standard input. Nothing is started or written.
    """
    name = "<stdin>.json" if file == "-" else file
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        click.echo(f"servec: cannot read {file}: {error.strerror}", err=True)
        return 1
    findings = Findings()
    files = Files(Memory({name: content}), findings)
    node = files.node(name)
    if node is None or findings.errors:
        return _refused(findings.show(), files)
    try:
        found = launch_node(node, engine_version=version, root=".")
    except InvalidShard as refused:
        return _refused(refused.findings, files)
    if found.findings:
        click.echo(render_text(found.findings, _line_of(files)), err=True, nl=False)
    if only_env or inherit:
        for line in found.environment(_inherited() if inherit else (), found.commands[-1]):
            click.echo(line)
    else:
        click.echo(json.dumps(_tree(found), indent=2, ensure_ascii=False))
    return 0


def _line_of(files: Files) -> LineOf:
    """A line of the shard without the keys that it may hold."""

    def line(file: str, number: int) -> str | None:
        text = files.line(file, number)
        return text and KEYS.sub(lambda found: found[1] + "*" * len(found[2]), text)

    return line


def _inherited() -> list[str]:
    return [f"{name}={value}" for name, value in os.environ.items()]


def _refused(findings: tuple[Finding, ...], files: Files) -> int:
    """The findings for people, and for the machine that reads the answer."""
    click.echo(render_text(findings, _line_of(files)), err=True)
    click.echo(f"servec: {summary(findings)}", err=True)
    click.echo(render_json(findings), nl=False)
    return 1


def _tree(found: ShardLaunch) -> dict[str, Any]:
    return {
        "commands": [
            {
                "name": command.name,
                "path": command.path,
                "args": list(command.args),
                "env": dict(command.env),
                "lifetime": command.lifetime,
                "wait_for_leader_port": command.wait_for_leader_port,
            }
            for command in found.commands
        ],
        "env": dict(found.env),
        "files": [
            {"path": file.path, "mode": f"{file.mode:04o}", "content": file.content}
            for file in found.files
        ],
        "serves_http": found.serves_http,
        "health_path": found.health_path,
        "metrics_path": found.metrics_path,
        "on_mig": found.on_mig,
        "falls_back_to_cpu": found.falls_back_to_cpu and list(found.falls_back_to_cpu),
        "help_command": list(found.help_command),
        **found.carried,
    }
