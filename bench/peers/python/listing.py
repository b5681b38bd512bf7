"""Times how long deepagents takes to write its section of the prompt, which it does for every call.

Usage: listing.py FOLDER
Prints the median of wall seconds.
"""

import logging
import statistics
import sys
import time

from deepagents.backends import FilesystemBackend
from deepagents.middleware import skills

folder = sys.argv[1]
logging.disable(logging.CRITICAL)
backend = FilesystemBackend(root_dir="/", virtual_mode=False)
middleware = skills.SkillsMiddleware(backend=backend, sources=[folder])
found = skills._list_skills(backend, folder)
# Some versions return the skills alone, some with errors beside them.
metadata = found[0] if isinstance(found, tuple) else found
samples = []
for _ in range(9):
    start = time.perf_counter()
    text = middleware.system_prompt_template.format(
        skills_locations=middleware._format_skills_locations(),
        skills_load_warnings=middleware._format_skills_load_warnings([]),
        skills_list=middleware._format_skills_list(metadata),
    )
    samples.append(time.perf_counter() - start)
if len(text) < 1_000_000:
    sys.exit(f"only {len(text)} characters: the skills are not listed")
print(statistics.median(samples))
