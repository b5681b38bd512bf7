"""The service as a careful team would write it with FastAPI, uvloop and Redis: list, get, load.

A skill is one document in Redis, and its row of the list another one, so that an answer needs as
few round trips as possible: one for a skill, two for a page, two for a counted load. What counts a
load is one transaction. Redis keeps all of it in memory only: nothing here waits for a disk.

REDIS_PORT names the server; SKILLS_FILE the skills, as JSON, which are stored at the start.
"""

import json
import os
from contextlib import asynccontextmanager
from datetime import datetime, timezone
from typing import Annotated

import redis.asyncio as redis
from fastapi import FastAPI, HTTPException, Query, Response
from pydantic import BaseModel

# Whoever finds all connections in use waits for one; the other pool of this client fails.
store = redis.Redis.from_pool(
    redis.BlockingConnectionPool(
        port=int(os.environ["REDIS_PORT"]), max_connections=64, timeout=None, decode_responses=True
    )
)


class Summary(BaseModel):
    id: str
    name: str
    description: str
    category: str
    version: str
    author: str | None = None


class Skill(Summary):
    is_builtin: bool
    active_version: int
    core_content: str
    resources: list[dict]
    scripts: list[dict]
    tool_configs: list[dict]
    resource_configs: list[dict]
    created_at: datetime
    updated_at: datetime


class Listed(BaseModel):
    skills: list[Summary]
    total: int
    next_cursor: str | None


class Load(BaseModel):
    session_id: str | None = None
    agent: str | None = None


class Loaded(BaseModel):
    skill_id: str
    name: str
    content: str


async def fill() -> None:
    """Stores the skills, each as a document and a row, and the order of their ids."""
    with open(os.environ["SKILLS_FILE"], encoding="utf-8") as file:
        skills = [Skill(**skill) for skill in json.load(file)]
    await store.flushall()
    pipeline = store.pipeline(transaction=False)
    for skill in skills:
        row = Summary(**skill.model_dump(include=set(Summary.model_fields)))
        pipeline.set(f"skill:{skill.id}", skill.model_dump_json())
        pipeline.set(f"skill:row:{skill.id}", row.model_dump_json())
        pipeline.zadd("skills", {skill.id: 0})
    await pipeline.execute()


@asynccontextmanager
async def lifespan(_: FastAPI):
    await fill()
    yield
    await store.aclose()


app = FastAPI(lifespan=lifespan)


async def find(skill_id: str) -> Skill:
    text = await store.get(f"skill:{skill_id}")
    if text is None:
        raise HTTPException(404, f"Skill not found: {skill_id}")
    return Skill.model_validate_json(text)


@app.get("/api/v1/skills")
async def list_skills(
    limit: Annotated[int, Query(ge=1, le=100)] = 50, cursor: str | None = None
) -> Listed:
    after = f"({cursor}" if cursor else "-"
    pipeline = store.pipeline(transaction=False)
    pipeline.zrangebylex("skills", after, "+", start=0, num=limit + 1)
    pipeline.zcard("skills")
    ids, total = await pipeline.execute()
    page = ids[:limit]
    rows = await store.mget([f"skill:row:{id}" for id in page]) if page else []
    return Listed(
        skills=[Summary.model_validate_json(row) for row in rows],
        total=total,
        next_cursor=page[-1] if len(ids) > limit else None,
    )


@app.get("/api/v1/skills/{skill_id}")
async def get_skill(skill_id: str, response: Response) -> Skill:
    skill = await find(skill_id)
    response.headers["ETag"] = f'"{skill.active_version}"'
    return skill


@app.post("/api/v1/skills/{skill_id}/load")
async def load_skill(skill_id: str, load: Load | None = None) -> Loaded:
    skill = await find(skill_id)
    pipeline = store.pipeline(transaction=True)
    pipeline.hincrby(f"metrics:{skill_id}", "total_loads", 1)
    pipeline.hincrby(f"metrics:{skill_id}", f"version:{skill.active_version}", 1)
    pipeline.hset(f"metrics:{skill_id}", "last_loaded_at", datetime.now(timezone.utc).isoformat())
    if load and load.session_id:
        pipeline.sadd(f"sessions:{skill_id}", load.session_id)
    await pipeline.execute()
    return Loaded(skill_id=skill.id, name=skill.name, content=skill.core_content)


@app.get("/api/v1/skills/{skill_id}/metrics")
async def metrics(skill_id: str) -> dict:
    counts = await store.hgetall(f"metrics:{skill_id}")
    return {
        "total_loads": int(counts.get("total_loads", 0)),
        "unique_sessions": await store.scard(f"sessions:{skill_id}"),
    }
