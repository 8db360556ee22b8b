"""``streamnorm serve``: the page on which streams can be watched, cut, compared and talked to.

    takes.py     which takes there are            dissect.py   a take, frame by frame
    scripted.py  a model without a network        live.py      a model with a key
    chat.py      runs of the tool loop            log.py       what readers hear, numbered
    answers.py   JSON, SSE, headers               app.py       the Starlette application
    static/      the page: HTML, CSS and ES modules, as they are, without a build step

Rule: nothing of this is imported by the library. It needs the extra ``ui`` (Starlette, uvicorn).
"""

from __future__ import annotations

__all__: list[str] = []
