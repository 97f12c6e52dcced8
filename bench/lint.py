"""python bench/lint.py: what `servec lint` costs, in CPU seconds of a whole process.

A script of 12 MiB with a call at its end, and a folder of 2,000 Kubernetes manifests with a call
each. Limits: 15 seconds for the script, 5 for the folder.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT_LINE = 'python3 -m some.program --alpha "$X" --beta=1 | tee -a log\necho "$(date)" done\n'
CALL = "vllm serve org/model --port 8000\n"
MANIFEST = """apiVersion: apps/v1
kind: Deployment
metadata: {name: server}
spec:
  template:
    spec:
      containers:
      - name: server
        image: vllm/vllm-openai:v0.29.0
        args: [--model, org/model, --port, "8000"]
"""


def cpu_of(path: str) -> float:
    """CPU seconds of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "servec", "lint", path], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = folder / "long.sh"
        script.write_text(SCRIPT_LINE * (12 * 2**20 // len(SCRIPT_LINE)) + CALL)
        manifests = folder / "manifests"
        manifests.mkdir()
        for number in range(2000):
            (manifests / f"{number}.yaml").write_text(MANIFEST)
        measured = [("script", cpu_of(str(script)), 15), ("folder", cpu_of(str(manifests)), 5)]
    for what, seconds, limit in measured:
        print(f"{what}: {seconds:.2f} s of CPU, at most {limit}")
    return int(any(seconds > limit for _, seconds, limit in measured))


if __name__ == "__main__":
    sys.exit(main())
