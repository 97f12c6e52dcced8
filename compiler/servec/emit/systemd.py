"""systemd: a hardened unit for each process of a model, which starts the wrapper.

The unit is a tree of sections and assignments; this printer owns the quoting of systemd.syntax(7)
and systemd.service(5): `%` is doubled everywhere, `$` and backslash in command lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

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


def units(launch: Launch, site: decl.SystemdSite | None) -> Iterator[Artifact]:
    """`<model>.service`, or of a replica over several nodes a service for each rank and process,
    bound to one another, and `<model>.target` that starts those of a host. A service waits for no
    readiness: engines open their port after the load."""
    placement = launch.placement
    if placement.way is None:
        yield _unit(launch, site, launch.plan.name)
        return
    replicas = max(len(placement.groups), 1)
    for replica in range(replicas):
        name = f"{launch.plan.name}-{replica}" if replicas > 1 else launch.plan.name
        which = ("--replica", str(replica)) if replicas > 1 else ()
        for rank in range(placement.nodes):
            words = (*which, "--rank", str(rank))
            server, target = f"{name}-rank{rank}", f"{name}.target"
            group = [("PartOf", target)]
            if rank == 0 and launch.beside is not None:
                beside = f"{server}-{launch.beside.name}"
                only = (*words, "--only", launch.beside.name)
                bound = [*group, ("BindsTo", f"{server}.service")]
                yield _unit(launch, site, beside, only, bound, target)
                group += [(key, f"{beside}.service") for key in ("BindsTo", "After")]
                if launch.beside.shares:  # a /tmp of both, and of nobody else
                    group.append(("JoinsNamespaceOf", f"{beside}.service"))
                words = (*words, "--only", "server")
            yield _unit(launch, site, server, words, group, target)
        yield _target(launch, name)


def _unit(
    launch: Launch,
    site: decl.SystemdSite | None,
    name: str,
    words: Sequence[str] = (),
    group: Sequence[tuple[str, str]] = (),
    target: str = "multi-user.target",
) -> Artifact:
    """One service: `words` are the wrapper's, `group` is what ties it to others."""
    plan, is_node = launch.plan, launch.placement.way is not None
    options = dict(zip(words[::2], words[1::2], strict=True))
    serves = options.get("--rank", "0") == "0" and options.get("--only", "server") == "server"
    folder = site.folder.value if site and site.folder else FOLDER
    environment = site.environment.value if site and site.environment else ENVIRONMENT
    user = site.user.value if site and site.user else USER
    wrapper = f"{folder.rstrip('/')}/{plan.name}/bash/serve.sh"
    which = "".join(f", {_who(*pair)}" for pair in zip(words[::2], words[1::2], strict=True))
    names = [plan.name, name] if is_node else [name]
    files = [f"{environment.rstrip('/')}/{one}.env" for one in names]
    sections: tuple[Section, ...] = (
        (
            "Unit",
            (
                ("Description", literal(f"{plan.name} ({plan.subject.engine.name}{which})")),
                ("Wants", "network-online.target"),
                ("After", "network-online.target"),
                *group,
                ("StartLimitIntervalSec", "1h"),
                ("StartLimitBurst", "5"),
            ),
        ),
        (
            "Service",
            (
                ("Type", "exec"),
                ("User", literal(user)),
                *(("EnvironmentFile", "-" + literal(file)) for file in files),
                *(_credential(launch, site) if serves else ()),
                ("ExecStart", command(("/bin/bash", wrapper, *words))),
                # A node that has lost the others ends, however it ends, and joins them anew.
                ("Restart", "always" if is_node else "on-failure"),
                ("RestartSec", "30"),
                ("TimeoutStopSec", str(STOP_SECONDS)),
                ("KillMode", "mixed"),
                ("LimitNOFILE", "1048576"),
                *((("LimitMEMLOCK", "infinity"),) if is_node else ()),
                *HARDENING,
            ),
        ),
        ("Install", (("WantedBy", target),)),
    )
    text = print_unit([*header(plan), *_reload(launch)], sections)
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
    return Artifact(f"{plan.name}/systemd/{name}.service", text, traces=traces)


def _who(option: str, value: str) -> str:
    """`--rank 0` as `rank 0`, `--only ray-head` as `ray-head alone`."""
    return f"{value} alone" if option == "--only" else f"{option.removeprefix('--')} {value}"


def _credential(launch: Launch, site: decl.SystemdSite | None) -> Iterator[tuple[str, str]]:
    """The API key as a credential; what the wrapper writes it to goes with the service."""
    if site is None or site.api_key is None or launch.api_key is None:
        return
    yield "LoadCredential", f"api-key:{literal(site.api_key.value)}"
    if launch.api_key.file is not None:
        yield "RuntimeDirectory", f"servec/{launch.plan.name}"
        yield "RuntimeDirectoryMode", "0700"


def _target(launch: Launch, name: str) -> Artifact:
    """What starts and stops the services of a replica that a host has enabled."""
    sections = (
        ("Unit", (("Description", literal(f"{name}: the ranks of this host")),)),
        ("Install", (("WantedBy", "multi-user.target"),)),
    )
    text = print_unit(header(launch.plan), sections)
    return Artifact(f"{launch.plan.name}/systemd/{name}.target", text)


def _reload(launch: Launch) -> tuple[str, ...]:
    """What an operator should know who looks for `systemctl reload`."""
    engine = launch.plan.subject.engine
    if not engine.manifest.hot_reload.value:
        return ()
    return (
        "there is no reload: a changed command takes effect at a restart;",
        f"{engine.name} loads other weights and adapters at run time by its own API",
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
