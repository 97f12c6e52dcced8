"""What can be carried to an engine at all: words of a command line, names and variables.

PYTHONPATH=/x -> it makes the server load other code
"""

from __future__ import annotations

import re

from servec.catalog.engines import EngineAt
from servec.ir.words import API_KEY_PLACES

# Names that bash sets, counts, locks or acts on itself: bash(1), Shell Variables.
BASH_OWN = frozenset((
    "_", "BASH_COMPAT", "BASH_VERSINFO", "EXECIGNORE", "FUNCNEST", "BASHOPTS", "BASHPID",
    "BASH_COMMAND", "BASH_ENV", "COMP_WORDBREAKS", "DIRSTACK", "EPOCHREALTIME", "EPOCHSECONDS",
    "EUID", "FUNCNAME", "GROUPS", "HISTCMD", "IFS", "LINENO", "OPTARG", "OPTIND", "PIPESTATUS",
    "POSIXLY_CORRECT", "PPID", "PWD", "RANDOM", "SECONDS", "SHELLOPTS", "SHLVL", "SRANDOM",
    "UID",
))  # fmt: skip
# Variables of the wrapper: what it exports would take their place.
WRAPPER_OWN = frozenset((
    "argv", "base", "before", "beside", "code", "end", "fact_names", "facts", "flag", "folder",
    "found", "gid_index", "have", "hcas", "image", "inside", "interface", "joins", "kept", "key",
    "known", "leader", "leader_address", "leads", "left", "line", "missing", "mode", "name",
    "negative", "node_address", "nvlink", "one", "only", "opposites", "other", "pairs", "place",
    "placed", "rank", "replica", "repository", "rest", "seen", "server", "spelled", "stopped",
    "switches", "tag", "three", "two", "value", "values", "wait_seconds", "waited", "wanted",
    "said", "tick",
    "word",
))  # fmt: skip
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# Loaders, interpreters and shells that a server starts run what these name: ld.so(8), bash(1),
# perlrun(1), node(1), ruby(1), python(1), and the libraries of CUDA and NCCL.
LOADS_CODE = re.compile(
    r"""(LD_.+|GCONV_PATH|PATH|ENV|IFS|PS4|PROMPT_COMMAND|SHELLOPTS|BASHOPTS|BASH_ENV|BASH_FUNC_.+
    |PYTHON(PATH|STARTUP|HOME|BREAKPOINT|INSPECT)|PERL5(OPT|LIB|DB)|PERLLIB|NODE_(OPTIONS|PATH)
    |RUBY(OPT|LIB)|NCCL_(NET|TUNER|PROFILER)_PLUGIN|CUDA_INJECTION(32|64)_PATH)\Z""",
    re.VERBOSE,
)
NOT_CARRIED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
SHELL_VARIABLE = re.compile(r"\$(?:[A-Z_][A-Z0-9_]*\b|\{[A-Z_][A-Z0-9_]*\}|\([A-Z_][A-Z0-9_]*\))")
IN_THE_IMAGE = "take it out; what needs it belongs into the image"
"""What to do with a variable that loads code, or opens the server."""
MOST_BYTES = 131_071  # of one argument or variable: MAX_ARG_STRLEN of Linux, less its end


def not_carried(text: str) -> str:
    """What keeps a text from reaching the engine by every target; empty where nothing does."""
    found = NOT_CARRIED.search(text)
    if found:
        return f"not every target can carry the character U+{ord(found.group()):04X}"
    return "it is longer than 128 KiB" if len(text.encode()) > MOST_BYTES else ""


def unexpanded(text: str) -> str:
    """A variable in a text as a shell would expand it; empty where there is none."""
    found = SHELL_VARIABLE.search(text)
    return found.group() if found else ""


def secret_advice(name: str, engine: EngineAt) -> str:
    """Where a secret belongs that stands in a source: the key that clients must have has keys of
    servec.yaml; other keys, as an administrator's or another service's, have none."""
    variables = {item.variable.value for item in engine.serve.api_key if item.variable}
    if name in {"api_key", "SERVEC_API_KEY", *variables}:
        return API_KEY_PLACES
    return (
        "leave it out here: on a host write it to the server's environment file, on a cluster to a"
        " Secret that an overlay adds"
    )


def refused(name: str, engine: EngineAt) -> str:
    """Why a variable may not be set at all; empty where it may."""
    if LOADS_CODE.match(name):
        return "it makes the server load other code"
    if name.startswith(("SERVEC_", "LWS_")) or engine.refuses(name):
        return "it opens the server, or is servec's to decide"
    return ""
