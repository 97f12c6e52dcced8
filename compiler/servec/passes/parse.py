"""parse: files -> located values.

    specs/qwen3.yaml: models: {qwen3-8b: {engine: vllm}}
      -> Parsed(specs={"specs/qwen3.yaml": Map(models: Map(qwen3-8b: Map(engine: "vllm" @ 3:13)))})

Model configurations that specs name are read here too, so that no later pass reads a source.
"""

from __future__ import annotations

import posixpath

from servec.diag import codes
from servec.ir.decl import INSIDE
from servec.ir.parsed import Parsed
from servec.source.files import PROJECT_FILE, Files
from servec.source.located import At, List, Map, Node, Span


def run(files: Files) -> Parsed:
    project = files.node(PROJECT_FILE) if _says_something(files) else None
    specs: dict[str, Node] = {}
    for folder, span in _spec_folders(project):
        if not files.has_folder(folder):
            files.findings.add(codes.NO_SPEC_FOLDER, span, folder=folder)
        for path in files.listing(folder)[0]:
            node = files.node(path)
            if node is not None:
                specs[path] = node
    configs: dict[str, Map] = {}
    for node in specs.values():
        for path in _named_configs(node):
            config = files.node(path) if path not in configs and files.exists(path) else None
            if isinstance(config, Map):
                configs[path] = config
    return Parsed(project, specs, configs)


def _says_something(files: Files) -> bool:
    """A project file may hold nothing but comments: then everything is as it is by default."""
    text = files.text(PROJECT_FILE) if files.exists(PROJECT_FILE) else None
    lines = (line.strip() for line in text.splitlines()) if text else ()
    return any(line and not line.startswith("#") for line in lines)


def _spec_folders(project: Node | None) -> list[tuple[str, Span | None]]:
    named = project.get("specs") if isinstance(project, Map) else None
    items = named.items if isinstance(named, List) else ()
    found: list[tuple[str, Span | None]] = [
        (posixpath.normpath(str(item.value)), item.span)
        for item in items
        if isinstance(item, At) and _is_inside(item.value)
    ]
    return found or [("specs", None)]


def _named_configs(spec: Node) -> list[str]:
    models = spec.get("models") if isinstance(spec, Map) else None
    found = []
    for entry in models.entries.values() if isinstance(models, Map) else ():
        config = entry.value.get("config") if isinstance(entry.value, Map) else None
        if isinstance(config, At) and _is_inside(config.value):
            found.append(str(config.value))
    return found


def _is_inside(value: object) -> bool:
    """Whether a path stays in the project; others are refused by their declaration, unread."""
    return isinstance(value, str) and INSIDE.takes(value)
