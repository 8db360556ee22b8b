"""``streamnorm serve``: takes, scripts and chats in, a page to watch, cut, compare and talk to out.

    takes.py     which takes there are            dissect.py   a take, frame by frame
    scripted.py  a model without a network        live.py      a model with a key
    chat.py      runs of the tool loop            protocols.py the same for other people's clients
    answers.py   JSON, headers                    app.py       the Starlette application
    static/      the page: HTML, CSS and ES modules, as they are, without a build step

Rule: nothing of this is imported by the library, and it has no chat server and no log of its own:
``ui.router`` and ``ui.log`` are used as anybody would. It needs the extra ``ui`` (Starlette, uvicorn).
"""

from __future__ import annotations

__all__: list[str] = []
