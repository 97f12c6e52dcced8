"""A reader of the words of a pod, written from Kubernetes' documentation."""

from __future__ import annotations


def expand_as_kubernetes(text: str, variables: dict[str, str]) -> str:
    """Expansion of `command`, `args` and `env`: kubernetes/third_party/forked/golang/expansion,
    written from its documentation: `$(NAME)` is replaced, `$$` is one `$` and ends a reference."""
    out, index = "", 0
    while index < len(text):
        if text[index] != "$" or index + 1 == len(text):
            out, index = out + text[index], index + 1
            continue
        following = text[index + 1]
        if following == "$":
            out, index = out + "$", index + 2
        elif following == "(" and ")" in text[index + 2 :]:
            end = text.index(")", index + 2)
            name = text[index + 2 : end]
            out, index = out + variables.get(name, f"$({name})"), end + 1
        else:
            out, index = out + "$" + following, index + 2
    return out
