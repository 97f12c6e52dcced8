"""Models by the name that a user gives on the command line."""

from __future__ import annotations

from servec.cli.session import Session
from servec.diag import codes
from servec.diag.suggest import nearest
from servec.ir.launch import Launch
from servec.pipeline import Compiled


def launches_of(name: str, done: Compiled, session: Session) -> list[Launch]:
    """The launches of a plan, of each variant of a model, or of the server that a model shares.
    None is a finding, or a word about somebody else's server."""
    others = dict(done.program.others)
    if name in others and others[name] is None:
        session.say(f"`{name}` is somebody else's server: servec plans nothing for it")
        return []
    if name in others:
        session.say(f"`{name}` shares the server of `{others[name]}`")
    wanted = others.get(name) or name
    names = {launch.plan.name for launch in done.launches}
    names |= {launch.plan.subject.model.name.value for launch in done.launches}
    found = [
        launch
        for launch in done.launches
        if wanted in (launch.plan.name, launch.plan.subject.model.name.value)
    ]
    if not found:
        known = sorted(names | set(others))
        session.findings.add(
            codes.NO_SUCH_NAME,
            None,
            what="model",
            name=name,
            known="known models: " + ", ".join(known),
            suggestion=nearest(name, known),
        )
    return found
