"""An exception of a source comes in and the words of ``Failed`` go out; and the other way round.

Rule: whose fault it is, is decided here and nowhere else; no secret of a request is in the words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ..errors import FrameError, ProviderError, StreamnormError, StreamTruncated, WireError
from ..events import Failed, FailedReason

__all__ = ["CutShort", "Reported", "error_of"]


class CutShort(StreamnormError):
    """Internal: whoever reads the connection for this stream says that it ends here, and why."""

    def __init__(
        self,
        reason: FailedReason,
        message: str,
        *,
        retryable: bool = False,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.reason: FailedReason = reason
        self.retryable, self.code = retryable, code


class Reported:
    """What an exception of a source says: the provider's own report, or a failed connection."""

    def __init__(self, error: Exception, redacted: Callable[[str], str]) -> None:
        status = getattr(error, "status_code", None) or getattr(error, "code", None)
        self.status = status if isinstance(status, int) else 0
        is_report = bool(self.status or getattr(error, "body", None))
        name = type(error).__name__
        self.code: str | None = None
        self.reason: FailedReason
        if is_report:
            self.reason = "provider_error"
            words = getattr(error, "message", None) or str(error)
            code = getattr(error, "status", None) or getattr(error, "code", None)
            self.code = str(code) if code else None
            self.retryable = self.status in (408, 409, 429) or self.status >= 500
        else:
            self.reason = "protocol" if "Decode" in name or "UnknownApi" in name else "transport"
            words = f"{type(error).__module__.partition('.')[0]}.{name}: {error}".rstrip(": ")
            self.retryable = self.reason == "transport"
        self.message = redacted(str(words))
        self.hides = redacted(str(error)) != str(error)  # does the exception itself hold a secret?

    def as_refusal(self, provider: str) -> ProviderError:
        """For a stream of which nothing was heard."""
        return ProviderError(
            self.message, code=self.code, status=self.status, retryable=self.retryable,
            provider=provider,
        )  # fmt: skip


_ERRORS: dict[str, type[WireError]] = {
    "truncated": StreamTruncated, "transport": StreamTruncated, "idle": StreamTruncated,
    "cancelled": StreamTruncated, "protocol": FrameError, "limit": FrameError,
}  # fmt: skip


Kind: TypeAlias = Callable[[type[WireError]], type[Any]]  # an error of ours -> one that is more


def error_of(failed: Failed, provider: str = "", kind: Kind = lambda ours: ours) -> Any:
    """The exception for an event: whose fault it is, in the same words.

    >>> error_of(Failed("provider_error", "Overloaded", True, "overloaded_error")).retryable
    True
    """
    if failed.reason == "provider_error":
        return kind(ProviderError)(
            failed.error, code=failed.code, retryable=failed.retryable, provider=provider
        )
    return kind(_ERRORS[failed.reason])(f"{failed.reason}: {failed.error}", provider=provider)
