"""Case files: small projects and what comes of them, on one screen.

    [case override_beats_recipe]
    # flags: --after layer
    [file specs/a.yaml]
    models: …
    [out]
    qwen3-8b  vllm 0.29.0 (spec)
    …

`# flags:` takes `--after PASS`, `--set …` and `--strict`. `# run: servec check` (or `# run: $ shell
words`) lines run in a folder that holds the files instead; each command's output follows
`$ command`, and its exit code where it is not 0. A line of a file may end with `# SV0201: message`:
then exactly those findings are expected, at those lines. `[bytes path]` is a file in hex.
`pytest --bless` rewrites `[out]` and the expectations in lines.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from servec.diag.findings import Finding, Findings
from servec.diag.render import render_text
from servec.ir.text import print_ir
from servec.ir.verify import verify
from servec.pipeline import run
from servec.source.files import Files, Memory

HEAD = re.compile(r"\[(case|file|bytes|out)(?: (.+))?\]\Z")
EXPECTED = re.compile(r"^(?P<line>.*?)(?P<gap>\s+)# (?P<text>SV[0-9]{4}: .*)$")
NO_OUT: list[str] = ["<none>"]


@dataclass
class Case:
    """One case of a file; `lines` are its lines there, from `[case …]` on."""

    path: Path
    name: str
    flags: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    files: dict[str, list[str]] = field(default_factory=dict)
    hexes: dict[str, str] = field(default_factory=dict)
    out: list[str] | None = None
    lines: list[str] = field(default_factory=list)

    @property
    def tree(self) -> dict[str, str | bytes]:
        tree: dict[str, str | bytes] = {
            path: "".join(f"{line}\n" for line in lines) for path, lines in self.files.items()
        }
        return tree | {path: bytes.fromhex(text) for path, text in self.hexes.items()}

    @property
    def expectations(self) -> list[str]:
        """Findings that lines of the files expect, as `file:line text`."""
        found = []
        for path, lines in self.files.items():
            for number, line in enumerate(lines, 1):
                if match := EXPECTED.match(line):
                    found.append(f"{path}:{number} {match['text']}")
        return sorted(found)


def read_cases(path: Path) -> list[Case]:
    cases: list[Case] = []
    section: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        head = HEAD.match(line)
        if head and head[1] == "case":
            cases.append(Case(path, head[2]))
            section = []
        elif head and head[1] == "file":
            section = cases[-1].files.setdefault(head[2], [])
        elif head and head[1] == "bytes":
            section = []
            cases[-1].hexes[head[2]] = ""
        elif head:
            section = cases[-1].out = []
        elif cases and cases[-1].out is None and cases[-1].hexes and _is_hex(line):
            last = list(cases[-1].hexes)[-1]
            cases[-1].hexes[last] += line.strip()
        elif cases and not cases[-1].files and line.startswith("# flags:"):
            cases[-1].flags = shlex.split(line.removeprefix("# flags:"))
        elif cases and not cases[-1].files and line.startswith("# run:"):
            cases[-1].commands.append(line.removeprefix("# run:").strip())
        else:
            section.append(line)
        if cases:
            cases[-1].lines.append(line)
    for case in cases:
        _strip(case)
    return cases


def _is_hex(line: str) -> bool:
    return re.fullmatch(r"[0-9a-f ]+", line.strip()) is not None


def _strip(case: Case) -> None:
    """Blank lines at the end of a section belong to the layout."""
    for lines in (*case.files.values(), *([case.out] if case.out is not None else [])):
        while lines and not lines[-1].strip():
            lines.pop()


def actual(case: Case, folder: Path) -> tuple[list[str], list[Finding]]:
    """The output of a case, and its findings where it was compiled in memory."""
    if case.commands:
        return _run(case, folder), []
    return _compile(case)


def _compile(case: Case) -> tuple[list[str], list[Finding]]:
    after = _option(case.flags, "--after")
    sets = tuple(case.flags[index + 1] for index, word in enumerate(case.flags) if word == "--set")
    findings = Findings()
    files = Files(Memory(case.tree), findings)
    texts: dict[str, str] = {}

    def observe(name: str, ir: object) -> None:
        verify(ir)
        if name == after:
            texts[name] = print_ir(ir)

    run(files, findings, sets=sets, strict="--strict" in case.flags, observe=observe)
    found = list(findings.show())
    text = texts.get(after, "") + render_text(found, files.line)
    return text.splitlines(), found


def _option(flags: list[str], name: str) -> str:
    return flags[flags.index(name) + 1] if name in flags else ""


def _run(case: Case, folder: Path) -> list[str]:
    for path, content in case.tree.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    lines: list[str] = []
    for command in case.commands:
        program = f"{shlex.quote(sys.executable)} -m servec "
        words = re.sub(r"(^|; )servec ", rf"\g<1>{program}", command.removeprefix("$ "))
        words = re.sub(r"^python ", f"{shlex.quote(sys.executable)} ", words)
        done = subprocess.run(
            ["bash", "-c", words],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        lines.append(f"$ {command.removeprefix('$ ')}")
        lines += done.stdout.replace(str(folder), "<project>").splitlines()
        if done.returncode:
            lines.append(f"exit {done.returncode}")
    return lines


def expected_text(finding: Finding) -> str:
    """A finding as an expectation in a line writes it."""
    hint = f"; did you mean `{finding.suggestion}`?" if finding.suggestion else ""
    return f"{finding.code.number}: {finding.message}{hint}"


def bless(case: Case, out: list[str], findings: list[Finding]) -> None:
    """Rewrite a case in its file with what came of it."""
    places = {(f.span.file, f.span.line): expected_text(f) for f in findings if f.span}
    lines: list[str] = []
    file, number = "", 0
    for line in case.lines:
        head = HEAD.match(line)
        if head:
            file, number = (head[2] or "", 0) if head[1] == "file" else ("", 0)
            if head[1] == "out":
                lines += [line, *out, ""]
                break
        elif file:
            number += 1
            text = places.get((file, number))
            if case.out is None and (match := EXPECTED.match(line)):
                line = f"{match['line']}{match['gap']}# {text}" if text else match["line"]
            elif case.out is None and text:
                line = f"{line}  # {text}"
        lines.append(line)
    text = case.path.read_text(encoding="utf-8")
    old, new = "\n".join(case.lines), "\n".join(lines).rstrip("\n") + "\n"
    case.path.write_text(text.replace(old, new).rstrip("\n") + "\n", encoding="utf-8")
