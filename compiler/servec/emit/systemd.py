"""systemd: one hardened unit a model, which starts the wrapper.

The unit is a tree of sections and assignments; this printer owns the quoting of systemd.syntax(7)
and systemd.service(5): `%` is doubled everywhere, `$` and backslash in command lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from servec.emit.header import header
from servec.ir import decl
from servec.ir.artifact import Artifact, Trace
from servec.ir.launch import Launch
from servec.ir.setting import Origin

BARE = re.compile(r"[A-Za-z0-9_./:@+,=-]+\Z")
Section = tuple[str, Sequence[tuple[str, str]]]
FOLDER = "/opt/servec"
ENVIRONMENT = "/etc/servec"
USER = "servec"
STOP_SECONDS = 120
"""What a server may take to finish its requests before it is killed."""


def unit(launch: Launch, site: decl.SystemdSite | None) -> Artifact:
    """`<model>.service`. It waits for no readiness: engines open their port after the load."""
    plan = launch.plan
    folder = site.folder.value if site and site.folder else FOLDER
    environment = site.environment.value if site and site.environment else ENVIRONMENT
    user = site.user.value if site and site.user else USER
    wrapper = f"{folder.rstrip('/')}/{plan.name}/bash/serve.sh"
    sections: tuple[Section, ...] = (
        (
            "Unit",
            (
                ("Description", literal(f"{plan.name} ({plan.subject.engine.name})")),
                ("Wants", "network-online.target"),
                ("After", "network-online.target"),
                ("StartLimitIntervalSec", "1h"),
                ("StartLimitBurst", "5"),
            ),
        ),
        (
            "Service",
            (
                ("Type", "exec"),
                ("User", literal(user)),
                ("EnvironmentFile", "-" + literal(f"{environment.rstrip('/')}/{plan.name}.env")),
                ("ExecStart", command(("/bin/bash", wrapper))),
                ("Restart", "on-failure"),
                ("RestartSec", "30"),
                ("TimeoutStopSec", str(STOP_SECONDS)),
                ("KillMode", "mixed"),
                ("LimitNOFILE", "1048576"),
                *HARDENING,
            ),
        ),
        ("Install", (("WantedBy", "multi-user.target"),)),
    )
    comments = [*header(plan), *_reload(launch)]
    text = print_unit(comments, sections)
    places = {
        "User": site and site.user,
        "EnvironmentFile": site and site.environment,
        "ExecStart": site and site.folder,
        "Description": plan.subject.model.name,
    }
    traces = {}
    for number, line in enumerate(text.splitlines(), 1):
        key = line.partition("=")[0]
        if key in places:
            place = places[key]
            rule = "" if place else "unless servec.yaml says otherwise under `systemd:`"
            traces[number] = Trace(None, Origin(place.span if place else None, "", rule))
    path = f"{plan.name}/systemd/{plan.name}.service"
    return Artifact(path, text, traces=traces)


def _reload(launch: Launch) -> tuple[str, ...]:
    """What an operator should know who looks for `systemctl reload`."""
    engine = launch.plan.subject.engine
    if not engine.manifest.hot_reload.value:
        return ()
    return (
        f"{engine.name} can change what it serves while it runs, by its own API;",
        "a changed command takes effect at the next restart, and there is no reload",
    )


# What a GPU server can do without. Left alone on purpose: PrivateDevices hides the GPUs,
# MemoryDenyWriteExecute stops just-in-time compilers, ProcSubset hides /proc/driver.
HARDENING = (
    ("NoNewPrivileges", "yes"),
    ("PrivateTmp", "yes"),
    ("ProtectSystem", "full"),
    ("ProtectControlGroups", "yes"),
    ("ProtectKernelLogs", "yes"),
    ("ProtectKernelModules", "yes"),
    ("ProtectKernelTunables", "yes"),
    ("ProtectClock", "yes"),
    ("ProtectHostname", "yes"),
    ("RestrictRealtime", "yes"),
    ("RestrictSUIDSGID", "yes"),
    ("LockPersonality", "yes"),
)


def print_unit(comments: Sequence[str], sections: Sequence[Section]) -> str:
    lines = [f"# {comment}" for comment in comments]
    for name, assignments in sections:
        lines += ["", f"[{name}]", *(f"{key}={value}" for key, value in assignments)]
    return "\n".join(lines) + "\n"


def literal(text: str) -> str:
    """A value that is taken as it stands but for specifiers."""
    return text.replace("%", "%%")


def command(words: Sequence[str]) -> str:
    """A command line; the first word is a path and is not subject to quoting rules of words."""
    return " ".join([literal(words[0]), *map(_word, words[1:])])


def _word(text: str) -> str:
    if BARE.match(text):
        return text
    return '"' + literal(_c_escaped(text)).replace("$", "$$") + '"'


def assignment(name: str, value: str) -> str:
    """One `NAME=value` of `Environment=`, quoted as a whole; `$` has no meaning there."""
    return '"' + literal(_c_escaped(f"{name}={value}")) + '"'


def _c_escaped(text: str) -> str:
    out = []
    for character in text:
        if character in '"\\':
            out.append("\\" + character)
        elif character in C_ESCAPES:
            out.append(C_ESCAPES[character])
        elif character < " " or character == "\x7f":
            out.append(f"\\x{ord(character):02x}")
        else:
            out.append(character)
    return "".join(out)


C_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
