"""Findings as text with carets, as rustc's readers know it, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from servec.diag.findings import Finding, Severity
from servec.source.located import Span

LineOf = Callable[[str, int], str | None]
"""Gives a line of a source by file and number, or None where there is none."""

COLOURS = {Severity.ERROR: "31;1", Severity.WARNING: "33;1", Severity.NOTE: "36;1"}
PLACE, HELP = "34;1", "32;1"
WIDTH = 110


def render_text(findings: Iterable[Finding], line_of: LineOf, *, colour: bool = False) -> str:
    """All findings, a blank line between them."""
    painter, found = _Painter(colour), list(findings)
    secret = {(f.span.file, f.span.line) for f in found if f.code.conceal and f.span}

    def shown(file: str, number: int) -> str | None:
        return None if (file, number) in secret else line_of(file, number)

    return "\n".join(_one(finding, shown, painter) for finding in found)


class _Painter:
    def __init__(self, colour: bool) -> None:
        self.colour = colour

    def __call__(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text


def _one(finding: Finding, line_of: LineOf, paint: _Painter) -> str:
    code = COLOURS[finding.severity]
    lines = [
        paint(f"{finding.severity.word}[{finding.code.number}]", code)
        + f": {_one_line(finding.message)}"
    ]
    if finding.span is not None:
        lines += _excerpt(finding.span, line_of, code, paint, "-->", "^")
    for span, words in finding.also:
        lines += _excerpt(span, line_of, PLACE, paint, ":::", "-", words)
    if finding.help:
        lines.append(f"  {paint('help', HELP)}: {_one_line(finding.help)}")
    return "\n".join(lines) + "\n"


def _excerpt(
    span: Span,
    line_of: LineOf,
    code: str,
    paint: _Painter,
    arrow: str,
    mark: str,
    words: str = "",
) -> list[str]:
    place = f"  {paint(arrow, PLACE)} {_printable(str(span))}"
    text = line_of(span.file, span.line)
    if text is None or not text.strip():
        return [f"{place} ({words})" if words else place]
    text, start = _window(text, span.column - 1)
    text = _printable(text)
    length = max(1, min(span.length, len(text) - start))
    gutter = " " * len(str(span.line))
    caret = " " * start + paint(mark * length + (f" {words}" if words else ""), code)
    bar = paint("|", PLACE)
    return [place, f"  {paint(str(span.line), PLACE)} {bar} {text}", f"  {gutter} {bar} {caret}"]


def _window(text: str, start: int) -> tuple[str, int]:
    """The part of a long line that holds the place, and where the place is in it."""
    if len(text) <= WIDTH:
        return text, start
    left = max(0, min(start - WIDTH // 3, len(text) - WIDTH))
    part = text[left : left + WIDTH]
    return ("…" + part[1:] if left else part), start - left


def _printable(text: str) -> str:
    """Control characters as visible ones of the same width, so that carets stay in their column."""
    return "".join(
        character if character.isprintable() else "�" for character in text.replace("\t", " ")
    )


def _one_line(text: str) -> str:
    return _printable(text.replace("\r", "\\r").replace("\n", "\\n"))


def summary(findings: Iterable[Finding]) -> str:
    """`2 errors, 1 warning`; empty where there is nothing."""
    counts = dict.fromkeys(sorted(Severity, reverse=True), 0)
    for finding in findings:
        counts[finding.severity] += 1
    return ", ".join(
        f"{count} {severity.word}{'s' if count > 1 else ''}"
        for severity, count in counts.items()
        if count
    )


def render_json(findings: Iterable[Finding]) -> str:
    """A list of objects, one a line."""
    rows = [json.dumps(_as_json(finding), ensure_ascii=False) for finding in findings]
    return "[\n" + ",\n".join(rows) + "\n]\n" if rows else "[]\n"


def _as_json(finding: Finding) -> dict[str, object]:
    return {
        "code": finding.code.number,
        "severity": finding.severity.word,
        "title": finding.code.title,
        "message": finding.message,
        "help": finding.help or None,
        "suggestion": finding.suggestion,
        "place": _place(finding.span) if finding.span else None,
        "also": [{**_place(span), "words": words} for span, words in finding.also],
    }


def _place(span: Span) -> dict[str, object]:
    return span._asdict()
