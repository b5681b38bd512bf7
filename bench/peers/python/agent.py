"""Times what deepagents does between two calls of the model: everything but the model and the wire.

Usage: agent.py FOLDER MESSAGES
The fake model first reads ten skills, then calls a tool again and again. Prints the median of the
wall seconds from an answer to the next question, of the last twenty before so many messages.
"""

import logging
import statistics
import sys
import time
from pathlib import Path

from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

folder, messages = sys.argv[1], int(sys.argv[2])
logging.disable(logging.CRITICAL)
skills = sorted(Path(folder).iterdir())[:10]
gaps: list[float] = []
state = {"answered": None, "calls": 0, "listed": 0}


def work() -> str:
    """Does nothing."""
    return "ok"


class Fake(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, sent, stop=None, run_manager=None, **kwargs):
        asked = time.perf_counter()
        if state["answered"] is not None:
            gaps.append(asked - state["answered"])
        number = state["calls"] = state["calls"] + 1
        state["listed"] = max(state["listed"], len(str(sent[0].content)))
        if len(sent) >= messages:
            answer = AIMessage("done")
        elif number <= len(skills):
            path = str(skills[number - 1] / "SKILL.md")
            arguments = {"file_path": path, "limit": 1000}
            call = {"name": "read_file", "args": arguments, "id": f"c{number}"}
            answer = AIMessage("", tool_calls=[call])
        else:
            answer = AIMessage("", tool_calls=[{"name": "work", "args": {}, "id": f"c{number}"}])
        result = ChatResult(generations=[ChatGeneration(message=answer)])
        state["answered"] = time.perf_counter()
        return result


agent = create_deep_agent(
    model=Fake(),
    tools=[work],
    skills=[folder],
    backend=FilesystemBackend(root_dir="/", virtual_mode=False),
)
agent.invoke({"messages": [{"role": "user", "content": "Go."}]}, {"recursion_limit": 100_000})
if state["listed"] < 100_000:
    sys.exit("the skills are not listed")
print(statistics.median(gaps[-20:]))
