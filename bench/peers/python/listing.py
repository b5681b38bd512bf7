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
from langchain.agents.middleware.types import ModelRequest
from langchain_core.messages import SystemMessage

folder = sys.argv[1]
logging.disable(logging.CRITICAL)
backend = FilesystemBackend(root_dir="/", virtual_mode=False)
middleware = skills.SkillsMiddleware(backend=backend, sources=[folder])
found = skills._list_skills(backend, folder)
# Some versions return the skills alone, some with errors beside them.
metadata = found[0] if isinstance(found, tuple) else found
request = ModelRequest(
    model=None,
    system_message=SystemMessage("You are a helpful assistant."),
    messages=[],
    tools=[],
    state={"skills_metadata": metadata, "skills_load_errors": []},
)
samples = []
for _ in range(9):
    start = time.perf_counter()
    modified = middleware.modify_request(request)
    samples.append(time.perf_counter() - start)
if len(str(modified.system_message.content)) < 1_000_000:
    sys.exit("the skills are not listed")
print(statistics.median(samples))
