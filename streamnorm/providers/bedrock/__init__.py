"""Amazon Bedrock ConverseStream. Every word of that wire that we know is in this file."""

from __future__ import annotations

from .._base import Provider
from .parser import ITEMS, BedrockParser

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    "bedrock", "Amazon Bedrock ConverseStream", "AWS event stream",
    "/model/…/converse-stream of bedrock-runtime", BedrockParser, ITEMS,
    encoder="streamnorm.providers.bedrock.encoder",
)  # fmt: skip
