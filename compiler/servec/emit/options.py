"""Files of options that go with a command: one text for every target."""

from __future__ import annotations

from servec.emit.header import header
from servec.emit.yaml import Tree, print_yaml
from servec.ir.artifact import Artifact, Trace
from servec.ir.launch import Launch, OptionsFile
from servec.ir.setting import Setting
from servec.source.located import Plain


def option_files(launch: Launch, folder: str) -> list[Artifact]:
    """The files as a host has them, in the folder of the wrapper."""
    comments = [f"# {line}" for line in header(launch.plan)]
    return [
        Artifact(
            f"{launch.plan.name}/{folder}/{file.name}",
            "\n".join([*comments, options_text(file)]),
            traces=_traces(file, len(comments)),
        )
        for file in launch.files
    ]


def options_text(file: OptionsFile) -> str:
    """A file's text: YAML, its keys in the order of their settings."""
    return "".join(_text(key, setting) for key, setting in file.options)


def _traces(file: OptionsFile, line: int) -> dict[int, Trace]:
    """What each line after the first few came from: the setting of its key."""
    traces: dict[int, Trace] = {}
    for key, setting in file.options:
        for _ in _text(key, setting).splitlines():
            line += 1
            traces[line] = Trace(setting, setting.winner.origin)
    return traces


def _text(key: str, setting: Setting) -> str:
    return print_yaml((), {key: _tree(setting.value)})[0]


def _tree(value: Plain) -> Tree:
    match value:
        case list():
            return [_tree(item) for item in value]
        case dict():
            return {key: _tree(item) for key, item in value.items()}
        case _:
            return value
