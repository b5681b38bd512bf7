"""Times how long a Python library takes to discover the skills of a folder.

Usage: discovery.py deepagents|deepagents-c|skills-ref FOLDER COUNT ROUNDS
Prints the median of wall seconds.
"""

import logging
import statistics
import sys
import time
from pathlib import Path

peer, folder, count, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
logging.disable(logging.CRITICAL)


def deepagents():
    from deepagents.backends import FilesystemBackend
    from deepagents.middleware import skills

    if peer == "deepagents-c":
        # The one-line change that its authors could make.
        skills.yaml.safe_load = lambda text: skills.yaml.load(text, Loader=skills.yaml.CSafeLoader)
    backend = FilesystemBackend(root_dir="/", virtual_mode=False)
    return lambda: len(skills._list_skills(backend, folder))


def skills_ref():
    from skills_ref import read_properties, validate

    def discover():
        found = 0
        for path in sorted(Path(folder).iterdir()):
            if path.is_dir() and not validate(path) and read_properties(path):
                found += 1
        return found

    return discover


discover = skills_ref() if peer == "skills-ref" else deepagents()
samples = []
for _ in range(rounds):
    start = time.perf_counter()
    found = discover()
    samples.append(time.perf_counter() - start)
    if found != count:
        sys.exit(f"{peer} found {found} of {count} skills")
print(statistics.median(samples))
