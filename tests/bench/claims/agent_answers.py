"""The answers of the local agent in the agent bench's conversations, with the tools of this repository."""

from __future__ import annotations

from bench.agent.dataset import Chosen, conversations, unseen, unseen_moment
from bench.agent.sessions import Moment, decider
from bench.agent.site import site
from bench.claims.transcripts import Part


async def marked_answers(part: Part) -> tuple[int, list[str]]:
    """Return how many answers the agent gave, and the sentences that were marked."""
    chosen = Chosen(development=part == "development")
    agent = decider("router", Moment(unseen_moment()), "")
    rows = [each["turns"] for each in conversations(chosen) if each["tools"] == "own"]
    rows += [[row] for row in unseen("console", chosen)]
    answers, marked = 0, list[str]()
    try:
        async with site() as place:
            for turns in rows:
                async with place.talk(agent, "text", forms=False) as talk:
                    for told in turns:
                        await talk.says(told["says"])
                        if told.get("approve"):
                            await talk.approves()
                    answers += len(talk.answers)
                    marked += [
                        claim["text"] for answer in talk.answers for claim in answer.get("unbackedClaims", ())
                    ]
    finally:
        await agent.close()
    return answers, marked
